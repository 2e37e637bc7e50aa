//! Reads a template: its text, values and statements.

use super::expression::{Expression, Reader};
use std::rc::Rc;

/// A part of a template.
#[derive(Debug)]
pub(in crate::emit) enum Node {
    Text(&'static str),
    Value(Expression<'static>),
    Set(&'static str, Expression<'static>),
    /// Each test with what follows it; `else` has 1.
    If(Vec<(Expression<'static>, Vec<Node>)>),
    For {
        names: Vec<&'static str>,
        values: Expression<'static>,
        only: Option<Expression<'static>>,
        body: Vec<Node>,
    },
    Macro(&'static str, Macro),
    Include(&'static str),
}

/// The names of a macro's arguments, and what it gives.
pub(in crate::emit) type Macro = Rc<(Vec<&'static str>, Vec<Node>)>;

/// How deep statements are nested at most.
const DEPTH: u32 = 60;

/// A part of a text, before statements are matched with their ends.
enum Piece {
    Text(&'static str),
    Value(&'static str),
    Statement(&'static str),
}

/// The parts of a template.
pub(super) fn read(text: &'static str) -> Result<Vec<Node>, String> {
    let mut pieces = split(text)?.into_iter();
    let (nodes, end) = block(&mut pieces, &[], 0)?;
    match end {
        None => Ok(nodes),
        Some(_) => Err("found an end without its beginning".to_owned()),
    }
}

fn split(text: &'static str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    for line in text.split_inclusive('\n') {
        let content = line.trim_start();
        if content.starts_with("//#") {
            continue;
        }
        if let Some(statement) = content.strip_prefix("//%") {
            pieces.push(Piece::Statement(statement));
            continue;
        }
        let mut rest = line;
        while let Some(at) = [rest.find("${"), rest.find("/*%")].into_iter().flatten().min() {
            pieces.push(Piece::Text(&rest[..at]));
            rest = &rest[at..];
            let (length, end) = match rest.strip_prefix("${") {
                Some(value) => (2 + unquoted(value, '}'), "}"),
                None => (rest.find("%*/").unwrap_or(rest.len()), "%*/"),
            };
            let Some(after) = rest.get(length..).and_then(|after| after.strip_prefix(end)) else {
                return Err(format!("found {rest:?}, wanted {end} in this line"));
            };
            pieces.push(match rest.starts_with('$') {
                true => Piece::Value(&rest[2..length]),
                false => Piece::Statement(&rest[3..length]),
            });
            rest = after;
        }
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Where a character first stands outside of quotes; the length if nowhere.
fn unquoted(text: &str, wanted: char) -> usize {
    let mut quoted = false;
    let found = text.find(|c| {
        quoted ^= c == '"';
        c == wanted && !quoted
    });
    found.unwrap_or(text.len())
}

/// Parts until a statement that is one of `ends`: with its reader behind its word.
type Block = (Vec<Node>, Option<(&'static str, Reader<'static>)>);

fn block(pieces: &mut std::vec::IntoIter<Piece>, ends: &[&'static str], depth: u32) -> Result<Block, String> {
    if depth > DEPTH {
        return Err(format!("found more than {DEPTH} statements within each other"));
    }
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text("") => {}
            Piece::Text(text) => nodes.push(Node::Text(text)),
            Piece::Value(text) => {
                let mut reader = Reader::new(text)?;
                nodes.push(Node::Value(reader.expression()?));
                reader.end()?;
            }
            Piece::Statement(text) => {
                let mut reader = Reader::new(text)?;
                let word = reader.name()?;
                if ends.contains(&word) {
                    return Ok((nodes, Some((word, reader))));
                }
                let node = statement(word, reader, pieces, depth);
                nodes.push(node.map_err(|message| format!("{}: {message}", text.trim()))?);
            }
        }
    }
    match ends {
        [] => Ok((nodes, None)),
        _ => Err(format!("found the end of the text, wanted {}", ends.join(" or "))),
    }
}

fn statement(
    word: &'static str,
    mut reader: Reader<'static>,
    pieces: &mut std::vec::IntoIter<Piece>,
    depth: u32,
) -> Result<Node, String> {
    match word {
        "set" => {
            let name = reader.name()?;
            reader.expect("=")?;
            let value = reader.expression()?;
            reader.end()?;
            Ok(Node::Set(name, value))
        }
        "include" => {
            let Expression::Text(name) = reader.expression()? else {
                return Err("wanted the name of a piece".to_owned());
            };
            reader.end()?;
            Ok(Node::Include(name))
        }
        "if" => {
            let mut arms = Vec::new();
            let mut test = reader.expression()?;
            reader.end()?;
            loop {
                let (body, end) = block(pieces, &["elif", "else", "endif"], depth + 1)?;
                arms.push((test, body));
                match end {
                    Some(("elif", mut reader)) => {
                        test = reader.expression()?;
                        reader.end()?;
                    }
                    Some(("else", _)) => test = Expression::Int(1),
                    _ => return Ok(Node::If(arms)),
                }
            }
        }
        "for" => {
            let names = reader.names()?;
            reader.expect("in")?;
            let values = reader.unconditional()?;
            let only = if reader.take("if")? { Some(reader.expression()?) } else { None };
            reader.end()?;
            let (body, _) = block(pieces, &["endfor"], depth + 1)?;
            Ok(Node::For { names, values, only, body })
        }
        "macro" => {
            let name = reader.name()?;
            reader.expect("(")?;
            let names = if reader.take(")")? { Vec::new() } else { reader.names()? };
            let (body, _) = block(pieces, &["endmacro"], depth + 1)?;
            Ok(Node::Macro(name, Rc::new((names, body))))
        }
        other => Err(format!("found {other}, wanted a statement")),
    }
}

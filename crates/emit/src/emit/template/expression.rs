//! Reads expressions.

/// An expression of a text.
#[derive(Debug)]
pub(in crate::emit) enum Expression<'t> {
    Int(i64),
    Text(&'t str),
    Name(&'t str),
    List(Vec<Expression<'t>>),
    Not(Box<Expression<'t>>),
    /// An operator's name and its operands.
    Binary(&'static str, Box<[Expression<'t>; 2]>),
    /// Test, and what it is then and otherwise.
    Select(Box<[Expression<'t>; 3]>),
    Defined(&'t str),
    Index(Box<[Expression<'t>; 2]>),
    Call(&'t str, Vec<Expression<'t>>, Vec<(&'t str, Expression<'t>)>),
    Filter(Box<Expression<'t>>, &'t str, Vec<Expression<'t>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Int(i64),
    Text(&'t str),
    /// A name or a keyword.
    Word(&'t str),
    Mark(&'static str),
    End,
}

/// Marks, the longer ones first.
const MARKS: [&str; 20] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "~", "*", "%", "<", ">", "=", "|", ",", "(", ")", "[", "]",
];

/// Operators with two operands, those that bind least first.
const OPERATORS: [&[&str]; 7] = [
    &["or"],
    &["and"],
    &["==", "!=", "<", "<=", ">", ">=", "in"],
    &["+", "-"],
    &["~"],
    &["*", "//", "%"],
    &["**"],
];
/// The place of comparisons among them: `not` binds less.
const COMPARISONS: usize = 2;

/// How deep expressions are nested at most.
const DEPTH: u32 = 60;

/// Reads statements and expressions from a part of a text.
pub(super) struct Reader<'t> {
    rest: &'t str,
    next: Token<'t>,
    depth: u32,
}

type Read<T> = Result<T, String>;

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Read<Self> {
        let mut reader = Reader { rest: text, next: Token::End, depth: 0 };
        reader.advance()?;
        Ok(reader)
    }

    /// Takes the next token and reads the one after it.
    fn advance(&mut self) -> Read<Token<'t>> {
        let rest = self.rest.trim_start();
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        let (token, length) = match rest.as_bytes().first() {
            None => (Token::End, 0),
            Some(b'"') => {
                let end =
                    rest[1..].find('"').ok_or_else(|| format!("found {rest}, wanted a quote at its end"))?;
                (Token::Text(&rest[1..=end]), end + 2)
            }
            Some(&first) if word(first) => {
                let length = rest.bytes().take_while(|&byte| word(byte)).count();
                let text = &rest[..length];
                let number = first.is_ascii_digit().then(|| text.parse());
                let token = match number {
                    None => Token::Word(text),
                    Some(number) => {
                        Token::Int(number.map_err(|_| format!("found {text}, wanted an integer"))?)
                    }
                };
                (token, length)
            }
            Some(_) => {
                let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
                let mark = mark.ok_or_else(|| format!("found {rest}, wanted an expression"))?;
                (Token::Mark(mark), mark.len())
            }
        };
        self.rest = &rest[length..];
        Ok(std::mem::replace(&mut self.next, token))
    }

    /// Whether the next token is this mark or keyword; takes it if so.
    pub(super) fn take(&mut self, wanted: &str) -> Read<bool> {
        let found = matches!(self.next, Token::Mark(found) | Token::Word(found) if found == wanted);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, wanted: &str) -> Read<()> {
        if self.take(wanted)? { Ok(()) } else { Err(format!("found {:?}, wanted {wanted}", self.next)) }
    }

    pub(super) fn end(&self) -> Read<()> {
        if self.next == Token::End { Ok(()) } else { Err(format!("found {:?}, wanted the end", self.next)) }
    }

    pub(super) fn name(&mut self) -> Read<&'t str> {
        match self.advance()? {
            Token::Word(name) => Ok(name),
            other => Err(format!("found {other:?}, wanted a name")),
        }
    }

    /// Names until something else than a comma.
    pub(super) fn names(&mut self) -> Read<Vec<&'t str>> {
        let mut names = vec![self.name()?];
        while self.take(",")? {
            names.push(self.name()?);
        }
        Ok(names)
    }

    pub(super) fn expression(&mut self) -> Read<Expression<'t>> {
        let value = self.unconditional()?;
        if !self.take("if")? {
            return Ok(value);
        }
        let test = self.unconditional()?;
        let otherwise = if self.take("else")? { self.expression()? } else { Expression::Text("") };
        Ok(Expression::Select(Box::new([test, value, otherwise])))
    }

    /// An expression that has no `if` of its own: the values of a loop.
    pub(super) fn unconditional(&mut self) -> Read<Expression<'t>> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("found more than {DEPTH} expressions within each other"));
        }
        let expression = self.binary(0)?;
        self.depth -= 1;
        Ok(expression)
    }

    fn binary(&mut self, level: usize) -> Read<Expression<'t>> {
        let Some(operators) = OPERATORS.get(level) else { return self.operand() };
        if level == COMPARISONS && self.take("not")? {
            return Ok(Expression::Not(Box::new(self.binary(level)?)));
        }
        let mut left = self.binary(level + 1)?;
        'more: loop {
            for operator in *operators {
                if self.take(operator)? {
                    left = Expression::Binary(operator, Box::new([left, self.binary(level + 1)?]));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    /// A value with its filters and tests.
    fn operand(&mut self) -> Read<Expression<'t>> {
        if self.take("-")? {
            return Ok(Expression::Binary("-", Box::new([Expression::Int(0), self.operand()?])));
        }
        let mut value = self.value()?;
        loop {
            if self.take("[")? {
                value = Expression::Index(Box::new([value, self.expression()?]));
                self.expect("]")?;
            } else if self.take("|")? {
                let filter = self.name()?;
                let arguments = if self.take("(")? { self.list(")")? } else { Vec::new() };
                value = Expression::Filter(Box::new(value), filter, arguments);
            } else if self.take("is")? {
                let not = self.take("not")?;
                self.expect("defined")?;
                let Expression::Name(name) = value else {
                    return Err("found a value that is defined, wanted a name".to_owned());
                };
                value = Expression::Defined(name);
                if not {
                    value = Expression::Not(Box::new(value));
                }
            } else {
                return Ok(value);
            }
        }
    }

    fn value(&mut self) -> Read<Expression<'t>> {
        Ok(match self.advance()? {
            Token::Int(value) => Expression::Int(value),
            Token::Text(text) => Expression::Text(text),
            Token::Word("true") => Expression::Int(1),
            Token::Word("false") => Expression::Int(0),
            Token::Word(name) if self.take("(")? => self.call(name)?,
            Token::Word(name) => Expression::Name(name),
            Token::Mark("[") => Expression::List(self.list("]")?),
            Token::Mark("(") => {
                let first = self.expression()?;
                if self.take(",")? {
                    let mut values = vec![first];
                    values.append(&mut self.list(")")?);
                    Expression::List(values)
                } else {
                    self.expect(")")?;
                    first
                }
            }
            other => return Err(format!("found {other:?}, wanted a value")),
        })
    }

    /// Expressions, and the mark that ends them.
    fn list(&mut self, end: &str) -> Read<Vec<Expression<'t>>> {
        let mut values = Vec::new();
        while !self.take(end)? {
            values.push(self.expression()?);
            if !self.take(",")? {
                self.expect(end)?;
                break;
            }
        }
        Ok(values)
    }

    /// The arguments of a call.
    fn call(&mut self, function: &'t str) -> Read<Expression<'t>> {
        let (mut arguments, mut named) = (Vec::new(), Vec::new());
        while !self.take(")")? {
            let argument = self.expression()?;
            match argument {
                Expression::Name(name) if self.take("=")? => named.push((name, self.expression()?)),
                other => arguments.push(other),
            }
            if !self.take(",")? {
                self.expect(")")?;
                break;
            }
        }
        Ok(Expression::Call(function, arguments, named))
    }
}

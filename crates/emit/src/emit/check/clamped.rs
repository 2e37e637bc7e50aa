//! Indices into storage buffers, kept within them in the text itself: what an API makes of one beyond a buffer is its own
//! matter, and differs from device to device (the last element, any of the buffer, or zero).

use super::parse;
use crate::emit::KernelSource;
use crate::error::Result;
use crate::sorted;
use naga::{AddressSpace, ArraySize, Expression, Function, Handle, Module, TypeInner};

/// The source with each index into a storage buffer no larger than that of its last element: `x[i]` becomes
/// `x[within(u32(i), arrayLength(&x))]`, with a function of a name that the text has not. An index below 0 is large. Lines stay
/// where they are.
///
/// # Errors
/// [`Error::Compile`](crate::error::Error::Compile) if the text is not WGSL.
pub fn clamped(source: &KernelSource) -> Result<KernelSource> {
    let (module, _) = parse(&source.label, &source.text)?;
    let functions = module.functions.iter().map(|(_, function)| function);
    let functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    let mut within = "diptych_within".to_owned();
    while source.text.contains(&within) {
        within.push('_');
    }
    let mut inserted: Vec<(usize, String)> = functions
        .flat_map(|function| indices(&module, function, (&source.text, &within)))
        .flatten()
        .collect();
    if inserted.is_empty() {
        return Ok(source.clone());
    }
    sorted::sort_by_key(&mut inserted, |(place, _)| *place);
    inserted.dedup();
    let mut text = source.text.clone();
    for (place, more) in inserted.into_iter().rev() {
        text.insert_str(place, &more);
    }
    text +=
        &format!("\nfn {within}(i: u32, n: u32) -> u32 {{ if (i < n) {{ return i; }} return n - 1u; }}\n");
    // A text whose comments or names of built-in functions make this another one stays as it is.
    Ok(KernelSource {
        text: if parse(&source.label, &text).is_ok() { text } else { source.text.clone() },
        ..source.clone()
    })
}

/// What is inserted before and behind each index of a function.
fn indices(module: &Module, function: &Function, (text, within): (&str, &str)) -> Vec<[(usize, String); 2]> {
    let mut found = Vec::new();
    for (handle, expression) in function.expressions.iter() {
        let (Expression::Access { base, .. } | Expression::AccessIndex { base, .. }) = *expression else {
            continue;
        };
        let Some(name) = buffer(module, function, base) else { continue };
        let Some(range) = function.expressions.get_span(handle).to_range() else { continue };
        let Some(own) = text.get(range.clone()).filter(|own| own.ends_with(']')) else { continue };
        let Some(open) = opened(own) else { continue };
        found.push([
            (range.start + open + 1, format!("{within}(u32(")),
            (range.end - 1, format!("), arrayLength(&{name}))")),
        ]);
    }
    found
}

/// The name of the buffer of any length that `base` is.
fn buffer<'a>(module: &'a Module, function: &Function, base: Handle<Expression>) -> Option<&'a str> {
    let Expression::GlobalVariable(global) = function.expressions[base] else { return None };
    let global = &module.global_variables[global];
    let array = matches!(module.types[global.ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. });
    let stored = matches!(global.space, AddressSpace::Storage { .. });
    global.name.as_deref().filter(|_| array && stored)
}

/// Where the bracket is that the last one closes.
fn opened(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (place, letter) in text.char_indices().rev() {
        match letter {
            ']' => depth += 1,
            '[' if depth == 1 => return Some(place),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::{Dialect, Interface};

    fn of(text: &str) -> String {
        let source = KernelSource {
            label: "mine".to_owned(),
            entry: "main".to_owned(),
            dialect: Dialect::Wgsl,
            text: text.to_owned(),
            interface: Interface { bindings: Vec::new(), params: Vec::new() },
            work_group: [1; 3],
        };
        clamped(&source).expect("WGSL").text
    }

    const BUFFERS: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
";

    #[test]
    fn each_index_of_a_buffer_is_clamped_and_no_other() {
        let of = |body: &str| {
            let whole = |body: &str| format!("{BUFFERS}@compute @workgroup_size(1) fn main() {{ {body} }}");
            let found = of(&whole(body));
            let found = found.split_once("\nfn diptych_within(").map_or(&*found, |(text, _)| text);
            let tail = found.split_once("main() { ").and_then(|(_, tail)| tail.strip_suffix(" }"));
            tail.expect("the body").to_owned()
        };
        let (x, y) = ("), arrayLength(&x))", "), arrayLength(&y))");
        assert_eq!(
            of("let i = 3; y[i].x = x[7]; y[2u][1] += 1.0;"),
            format!(
                "let i = 3; y[diptych_within(u32(i{y}].x = x[diptych_within(u32(7{x}]; y[diptych_within(u32(2u{y}][1] += 1.0;"
            )
        );
        // One within another, and through a pointer.
        assert_eq!(
            of("let p = &x; y[u32(x[1])] = vec4((*p)[2]);"),
            format!(
                "let p = &x; y[diptych_within(u32(u32(x[diptych_within(u32(1{x}]){y}] = vec4((*p)[diptych_within(u32(2{x}]);"
            )
        );
        let own = "var a = array<f32, 2>(); let i = 1; a[i] = 2.0;";
        assert_eq!(of(own), own);
    }

    #[test]
    fn names_of_the_text_are_left_to_it() {
        let body =
            "fn main() { var min = x[0]; if x[2] < min { min = x[2]; } y[0].x = min + diptych_within; }";
        let own = format!("{BUFFERS}const diptych_within = 1.0; @compute @workgroup_size(1) {body}");
        let found = of(&own);
        assert_eq!(found.matches("[diptych_within_(u32(").count(), 4, "{found}");
        let function = format!(
            "{BUFFERS}fn min(a: u32, b: u32) -> u32 {{ return 0u; }}
            @compute @workgroup_size(1) fn main() {{ y[0].x = x[min(1u, 2u)]; }}"
        );
        assert!(of(&function).contains("x[diptych_within(u32(min(1u, 2u)), arrayLength(&x))]"));
    }
}

//! The README's tables of functions, against the table.

/// The names in a part of the table's source.
fn names<'a>(source: &'a str, part: &str) -> Vec<&'a str> {
    let begin = source.rfind(&format!("        {part} {{")).expect("the part") + part.len() + 10;
    let (mut depth, mut end) = (1, begin);
    for (at, letter) in source[begin..].char_indices() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if depth == 0 {
            end = begin + at;
            break;
        }
    }
    let words = source[begin..end].split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words
        .filter(|word| word.len() > 1 && word.starts_with(|letter: char| letter.is_ascii_uppercase()))
        .collect()
}

/// The names in a part of the README, between the texts.
fn listed<'a>(readme: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let begin = readme.find(from).expect("the table");
    let end = readme[begin..].find(to).map_or(readme.len(), |at| begin + at);
    readme[begin..end].split('`').skip(1).step_by(2).collect()
}

/// Whether a name is as a pattern says, whose stars stand for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            (0..=name.len()).any(|at| name.is_char_boundary(at) && fits(rest, &name[at..]))
        }),
    }
}

#[test]
fn each_function_is_in_the_readme() {
    let source = include_str!("../../src/api.rs");
    let readme = include_str!("../../README.md");
    let answered = listed(readme, "These answer:", "These give an error");
    let refused = listed(readme, "These give an error", "\n\n## ");
    let mut own = [names(source, "answered"), names(source, "released"), vec!["GetBuildInfoString"]].concat();
    assert!(own.len() > 150, "{}", own.len());
    for name in &own {
        assert!(answered.contains(name), "{name} answers, and the README does not say so");
    }
    own.sort_unstable();
    for name in answered {
        assert!(own.binary_search(&name).is_ok(), "the README says that {name} answers");
    }
    let others = [names(source, "refused"), names(source, "absent")].concat();
    assert!(others.len() > 250, "{}", others.len());
    for name in &others {
        let found = refused.iter().any(|pattern| fits(pattern, name));
        assert!(found, "{name} is refused, and the README does not say so");
    }
    for pattern in refused {
        assert!(others.iter().any(|name| fits(pattern, name)), "nothing that is refused is {pattern}");
    }
}

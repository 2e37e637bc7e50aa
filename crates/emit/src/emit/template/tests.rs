//! What texts give, worked out by hand, and what is refused.

use super::{Functions, Value, render};

/// `twice(x)`, and what is named after it.
struct Twice;

impl Functions for Twice {
    fn call(&self, name: &str, arguments: &[Value], named: &[(&str, Value)]) -> Result<Value, String> {
        match (name, arguments) {
            ("twice", [x]) => {
                let named: Vec<String> =
                    named.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                Ok(format!("{x}{x}{}", named.concat()).into())
            }
            _ => Err(format!("the function {name} is unknown")),
        }
    }
}

fn given(text: &'static str) -> Result<String, String> {
    let names = vec![
        ("N", Value::from(3)),
        ("NONE", Value::from(0)),
        ("name", "src".into()),
        ("tile", [4, 2, 1].into_iter().map(i64::from).collect()),
    ];
    let piece = |name: &str| match name {
        "piece" => Some("<${N}>"),
        "endless" => Some("//% include \"endless\"\n"),
        _ => None,
    };
    render(text, names, &Twice, piece)
}

#[test]
fn expressions_have_the_values_that_their_operators_say() {
    for (text, wanted) in [
        ("${1 + 2 * 3}", "7"),
        ("${(1 + 2) * 3}", "9"),
        ("${7 - 2 - 1}", "4"),
        ("${2 ** 3 * 2}", "16"),
        ("${-7 // 2} ${-7 % 2} ${7 // 2 * 2}", "-4 1 6"),
        // `~` binds more than `+`, less than `*`.
        ("${\"a\" ~ 2 * 3 ~ \"b\"}", "a6b"),
        ("${\"a\" ~ N // 2 ~ \".\" ~ [\"x\", \"y\"][N % 2]}", "a1.y"),
        ("${tile[0] * tile[1]}", "8"),
        ("${name if N > 2 else \"no\"}${\"unseen\" if NONE}", "src"),
        ("${1 if not N == 3 and N else 2}", "2"),
        ("${NONE or 5} ${N and 6}", "5 6"),
        ("${\"a\" in [\"b\", \"a\"]} ${4 in tile} ${3 in tile}", "1 1 0"),
        ("${N is defined} ${M is defined} ${M is not defined}", "1 0 1"),
        ("${[5, N, 4] | min}", "3"),
        ("${\" a } b \" | trim}", "a } b"),
        ("${twice(\"x\", row=1 + 1, column=name)}", "xx row=2 column=src"),
        ("${true} ${false}", "1 0"),
    ] {
        assert_eq!(given(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn statements_take_their_lines_with_them() {
    for (text, wanted) in [
        ("a\n    //# note\nb\n", "a\nb\n"),
        ("    //% if N == 3\n  yes\n//% elif N == 4\n  four\n    //% else\n  no\n//% endif\n.", "  yes\n."),
        ("//% if NONE\nno\n//% elif NONE\nno\n//% else\nyes\n//% endif\n", "yes\n"),
        ("//% for i in range(2)\n${i},\n//% endfor\n", "0,\n1,\n"),
        (
            "/*% for i in range(1, 8, 3) if i != 4 %*/${loop.index0}:${i}${\", \" if not loop.last}/*% endfor %*/",
            "0:1, 1:7",
        ),
        ("//% for a, b in [(1, 2), (3, 4)] | reverse\n${a}${b}\n//% endfor\n", "34\n12\n"),
        ("//% set x = 1\n//% for i in range(2)\n//% set x = x + 5\n${x}\n//% endfor\n${x}\n", "6\n6\n1\n"),
        ("a${N}b${N}\n//% include \"piece\"\nc", "a3b3\n<3>c"),
        ("no newline", "no newline"),
    ] {
        assert_eq!(given(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn macros_see_what_was_known_before_them() {
    let text = "//% set x = 1\n//% macro line(a)\nfirst ${a}\n\nsecond ${x}\n//% endmacro\n\
        //% for x in range(5, 6)\n    ${line(x) | trim | indent(4)};\n//% endfor\n";
    assert_eq!(given(text).as_deref(), Ok("    first 5\n\n    second 1;\n"));
    let outer = "//% macro inner()\n${y}\n//% endmacro\n//% set y = 1\n${inner()}";
    assert!(given(outer).is_err_and(|message| message.contains("the name y is unknown")));
}

#[test]
fn errors_say_what_was_found() {
    for (text, wanted) in [
        ("${nothing}", "the name nothing is unknown"),
        ("${nothing()}", "the function nothing is unknown"),
        ("${1 +}", "wanted a value"),
        ("${1 2}", "wanted the end"),
        ("${1", "wanted } in this line"),
        ("/*% if 1 ", "wanted %*/ in this line"),
        ("${\"open}", "wanted } in this line"),
        ("${99999999999999999999}", "wanted an integer"),
        ("${9223372036854775807 + 1}", "no integer of 64 bits"),
        ("${2 ** 70}", "no integer of 64 bits"),
        ("${1 // NONE}", "no integer of 64 bits"),
        ("${tile[3]}", "found index 3 of 3 elements"),
        ("${tile[-1]}", "found index -1 of 3 elements"),
        ("${name + 1}", "found src, wanted an integer"),
        ("${name | upper}", "found filter upper"),
        ("${[] | min}", "found an empty list"),
        ("${range(1000000)}", "at most 100000"),
        ("${range(0, 5, 0)}", "at most 100000"),
        ("//% if N\nx", "wanted elif or else or endif"),
        ("//% endif\n", "found endif, wanted a statement"),
        ("//% for a, b in [1]\n//% endfor\n", "wanted a list"),
        ("//% for a, b in [(1, 2, 3)]\n//% endfor\n", "wanted 2 values"),
        ("//% while N\n", "found while, wanted a statement"),
        ("//% include \"nothing\"\n", "found no piece"),
        ("//% include \"endless\"\n", "within each other"),
        ("//% macro f(a)\n//% endmacro\n${f()}", "found 0 arguments, wanted 1"),
    ] {
        let found = given(text);
        assert!(found.as_ref().is_err_and(|message| message.contains(wanted)), "{text}: {found:?}");
    }
    let deep: &'static str =
        Box::leak(format!("${{{}1{}}}", "(".repeat(500), ")".repeat(500)).into_boxed_str());
    assert!(given(deep).is_err_and(|message| message.contains("within each other")));
}

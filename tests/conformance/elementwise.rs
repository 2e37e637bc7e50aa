//! Problems of `elementwise`: every function where it turns, jumps or bends, and every kind of broadcasting.

use crate::cases::Breadth;
use crate::gpu;
use crate::problem::{Problem, compare_ends, expected};
use diptych::{Bits, Dims, Function, Layout, Precision};
use diptych_device::device::Device;
use diptych_emit::emit::Operand;
use diptych_kernels::ops::elementwise::{ElementwiseOp, Program, Source, Step};
use diptych_kernels::ops::{Choice, Operands};
use std::sync::Arc;

const X: [Source; 6] = [
    Source::Input(0),
    Source::Input(1),
    Source::Input(2),
    Source::Input(3),
    Source::Input(4),
    Source::Input(5),
];

fn number(value: f32) -> Source {
    Source::Number(Bits(value))
}

fn step(function: Function, arguments: &[Source]) -> Step {
    Step { function, arguments: arguments.to_vec() }
}

fn program(steps: Vec<Step>) -> Program {
    Program::new(steps).expect("a valid row")
}

pub(crate) fn problem(program: Program, inputs: &[&[usize]], precision: Precision) -> Problem {
    let dims: Vec<Dims> = inputs.iter().map(|extents| Dims::new(extents).expect("small")).collect();
    Arc::new(ElementwiseOp::new(program, &dims, precision).expect("a valid row"))
}

/// `function` of inputs in [-1, 1) that are brought to where it does something.
fn prepared(function: Function) -> Program {
    use Function as F;
    let mut steps = Vec::new();
    let mut arguments = Vec::new();
    for (place, &x) in X.iter().enumerate().take(function.arity()) {
        let last = |steps: &Vec<Step>| Source::Step(steps.len() as u8 - 1);
        match (function, place) {
            (F::Log | F::Sqrt | F::Rsqrt, _) => {
                steps.push(step(F::Abs, &[x]));
                steps.push(step(F::Mul, &[last(&steps), number(8.0)]));
            }
            (F::Div | F::FloorDiv | F::FloorMod, 1) | (F::Pow, 0) => {
                steps.push(step(F::Abs, &[x]));
                steps.push(step(F::Add, &[last(&steps), number(0.375)]));
            }
            (F::Reciprocal, _) => {
                steps.push(step(F::Mul, &[x, number(0.5)]));
                steps.push(step(F::Sub, &[last(&steps), number(0.75)]));
            }
            (
                F::Equal
                | F::NotEqual
                | F::Less
                | F::LessEqual
                | F::Greater
                | F::GreaterEqual
                | F::LogicalAnd
                | F::LogicalOr
                | F::LogicalNot
                | F::Sign,
                _,
            )
            | (F::Select, 0) => {
                steps.push(step(F::Mul, &[x, number(2.0)]));
                steps.push(step(F::Round, &[last(&steps)]));
            }
            // `-1 ..= 1` of a number below, in between or above.
            (F::Clamp, 1) => steps.push(step(F::Sub, &[x, number(1.0)])),
            (F::Clamp, 2) => steps.push(step(F::Add, &[x, number(1.0)])),
            _ => steps.push(step(F::Mul, &[x, number(if function.arity() == 1 { 8.0 } else { 2.0 })])),
        }
        arguments.push(last(&steps));
    }
    steps.push(Step { function, arguments });
    program(steps)
}

/// A number of inputs that are not interchangeable: `((x0 - x1) 2 - x2) 2 - x3 ...`.
fn differences(inputs: usize) -> Program {
    let mut steps = vec![step(Function::Sub, &X[..2])];
    for &x in X.iter().take(inputs).skip(2) {
        let last = Source::Step(steps.len() as u8 - 1);
        steps.push(step(Function::Mul, &[last, number(2.0)]));
        steps.push(step(Function::Sub, &[Source::Step(steps.len() as u8 - 1), x]));
    }
    program(steps)
}

/// Shapes that go with each other: of ranks 1 to 6, of whole vec4s and not.
const BROADCASTS: &[&[&[usize]]] = &[
    &[&[7], &[7]],
    &[&[1], &[12]],
    &[&[5, 7], &[7]],
    &[&[5, 8], &[5, 1]],
    &[&[3, 5, 7], &[3, 1, 7]],
    &[&[3, 5, 4], &[1, 5, 1]],
    &[&[2, 3, 5, 7], &[2, 3, 5, 7]],
    &[&[2, 3, 5, 7], &[7]],
    &[&[2, 3, 5, 8], &[8]],
    &[&[2, 3, 5, 7], &[2, 3, 5, 1]],
    &[&[2, 3, 5, 8], &[2, 3, 5, 1]],
    &[&[2, 1, 1, 7], &[2, 3, 5, 7]],
    &[&[2, 3, 1, 6], &[1, 3, 5, 6]],
    &[&[1, 3, 1, 1], &[2, 1, 5, 9]],
    &[&[2, 1, 5, 1], &[1, 3, 1, 13]],
    &[&[], &[2, 3, 5, 6]],
    &[&[1, 67, 33, 3], &[33, 3]],
    &[&[1, 2, 3, 1030], &[1030]],
    &[&[2, 1, 3, 1], &[2, 3, 3, 1], &[3]],
    &[&[2, 3, 5, 7], &[7], &[3, 1, 1], &[2, 1, 1, 1], &[5, 1], &[2, 3, 5, 1]],
    &[&[2, 3, 4, 8], &[8], &[3, 1, 1], &[2, 1, 1, 1], &[4, 1], &[2, 3, 4, 1]],
    &[&[2, 3, 2, 5, 7], &[2, 1, 2, 1, 7]],
    &[&[2, 3, 2, 5, 3, 4], &[3, 1, 5, 1, 4], &[2, 1, 2, 1, 3, 1]],
    &[&[2, 3, 2, 3, 2, 3], &[2, 1, 2, 1, 2, 1]],
    &[&[1, 2, 1, 2, 1, 5], &[3, 1, 3, 1, 3, 1]],
];

/// Every row: its name, the problem, and how many kernels are tried.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let mut rows = Vec::new();
    let mut push = |program: Program, inputs: &[&[usize]], precision: Precision, breadth: Breadth| {
        let problem = problem(program, inputs, precision);
        rows.push((format!("{} {precision} {breadth:?}", problem.problem_key()), problem, breadth));
    };
    let f32 = Precision::F32;
    let halves = [Precision::F16Storage, Precision::F16];
    for &function in Function::ALL {
        let shapes = |extents: &'static [usize]| vec![extents; function.arity()];
        // With vec4s in maps and single elements in rows; other rows of the table have vec4s in rows.
        push(prepared(function), &shapes(&[1, 3, 5, 7]), f32, Breadth::Variants);
        push(prepared(function), &shapes(&[1, 3, 5, 7]), Precision::F16, Breadth::Variants);
    }
    // Powers of negative numbers, a slope that is a number, limits that are no numbers of f16.
    for (function, numbers) in [
        (Function::Pow, &[3.0][..]),
        (Function::Pow, &[4.0]),
        (Function::Pow, &[0.0]),
        (Function::LeakyRelu, &[0.2]),
        (Function::Clamp, &[f32::NEG_INFINITY, 0.25]),
        (Function::Maximum, &[-3.4e38]),
    ] {
        let arguments: Vec<Source> =
            [X[0]].into_iter().chain(numbers.iter().map(|&value| number(value))).collect();
        for precision in [f32, Precision::F16Storage, Precision::F16] {
            push(program(vec![step(function, &arguments)]), &[&[2, 3, 4, 5]], precision, Breadth::Variants);
        }
    }
    for inputs in BROADCASTS {
        push(differences(inputs.len()), inputs, f32, Breadth::Variants);
        if inputs.iter().any(|extents| extents.len() == 4) {
            for precision in halves {
                push(differences(inputs.len()), inputs, precision, Breadth::Variants);
            }
        }
    }
    // What makes something of the zeros beyond the channels.
    let exponential = || program(vec![step(Function::Sub, &X[..2]), step(Function::Exp, &[Source::Step(0)])]);
    for inputs in [&[&[2, 3, 5, 6][..], &[2, 3, 5, 6][..]], &[&[2, 3, 5, 6], &[6]], &[&[2, 3, 5, 9], &[5, 1]]]
    {
        push(exponential(), inputs, f32, Breadth::Groups);
        push(exponential(), inputs, Precision::F16Storage, Breadth::Variants);
    }
    // Beyond a line of invocations, and the longest program.
    push(differences(2), &[&[1, 300, 250, 4], &[1, 300, 250, 4]], f32, Breadth::Variants);
    push(differences(2), &[&[1, 300, 250, 5], &[250, 1]], f32, Breadth::Variants);
    let mut long = vec![step(Function::Add, &[X[0], number(0.5)])];
    for length in 1..16 {
        let [last, before] = [1, 2].map(|back| Source::Step((length as u8).saturating_sub(back)));
        let function = if length % 2 == 0 { Function::Sub } else { Function::Mul };
        let other = if length == 1 { X[0] } else { before };
        long.push(step(function, &[last, if length % 3 == 0 { number(0.75) } else { other }]));
    }
    push(program(long), &[&[1, 9, 11, 7]], f32, Breadth::Variants);
    rows
}

/// Every function where an argument is no number, infinite, zero, tiny or huge: each kind of result as it is
/// mathematically, on every backend. The third argument of three is one that the others leave room for.
pub(crate) async fn ends(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let inf = f32::INFINITY;
    let one = [
        f32::NAN,
        inf,
        -inf,
        0.0,
        1.0,
        -1.0,
        0.3,
        -2.0,
        3.0,
        1e-20,
        -1e-20,
        3e-4,
        -3e-4,
        88.9,
        -88.9,
        1e10,
        -1e10,
        3e38,
        -3e38,
        0.999,
        1.001,
        -0.5,
    ];
    let many = [f32::NAN, inf, -inf, 0.0, 1.0, -1.0, 0.3, -2.0, 3.0, 1e-20, 1e10, -1e10, 3e38, -0.5];
    let mut failures = Vec::new();
    for &function in Function::ALL {
        let edges = match function {
            // PoCL reduces all four arguments of a vector as the largest needs, and the small ones lose their digits.
            Function::Sin | Function::Cos => &one[..15],
            _ if function.arity() == 1 => &one[..],
            _ => &many[..],
        };
        // Vulkan promises no quotient by more than 2^126, and NVIDIA's driver makes 0 of it.
        let divides = matches!(function, Function::Div | Function::FloorDiv);
        let is_defined = |row: &[f32; 3]| !(divides && row[1] == 3e38);
        let rows: Vec<[f32; 3]> = match function.arity() {
            1 => edges.iter().map(|&a| [a; 3]).collect(),
            2 => edges
                .iter()
                .flat_map(|&a| edges.iter().map(move |&b| [a, b, 0.0]))
                .filter(is_defined)
                .collect(),
            _ => edges.iter().flat_map(|&a| [[a, -1.0, 2.0], [a, 0.0, inf], [a, -inf, 0.5]]).collect(),
        };
        let program = program(vec![step(function, &X[..function.arity()])]);
        let problem = problem(program, &vec![&[rows.len()][..]; function.arity()], Precision::F32);
        let operands: Operands<'_> = (0..function.arity())
            .map(|place| {
                let values: Vec<f32> = rows.iter().map(|row| row[place]).collect();
                (Operand::Arg(place as u8), values.into())
            })
            .collect();
        let expected = expected(&*problem, &operands);
        let named = |failure: String| {
            let parts = failure.split(", element ").map(|part| {
                let index = part.trim_start_matches("element ").split(' ').next();
                let row =
                    index.and_then(|index| index.parse::<usize>().ok()).and_then(|index| rows.get(index));
                format!("  {:?} {part}", row.map(|row| &row[..function.arity()]))
            });
            parts.collect::<Vec<_>>().join("\n")
        };
        for device in devices {
            for (variant, layout) in [("maps", Layout::C4), ("rows", Layout::Nhwc)] {
                let choice = Choice::new(variant, [1, 1, 1], [64, 1, 1]).with_layout(layout);
                let outcome = gpu::check_by(
                    &compare_ends,
                    &**device,
                    &*problem,
                    &operands,
                    &expected,
                    &choice,
                    &|_| {},
                );
                let name = format!("{function:?} {variant} on {}", device.info());
                failures.extend(outcome.await.err().map(|failure| format!("{name}:\n{}", named(failure))));
            }
        }
        let result = crate::cpu::run(&*problem, &operands).expect("a run");
        let outcome = compare_ends(&*problem, &expected, &result);
        failures.extend(outcome.err().map(|failure| format!("{function:?} on the CPU:\n{}", named(failure))));
    }
    failures
}

/// Mistakes in the kernels: what is computed from which shapes, the kernel, and a change of its text.
pub(crate) fn mistakes() -> Vec<(&'static str, Problem, &'static str, Layout, &'static str, &'static str)> {
    let of = |inputs: &[&[usize]]| problem(differences(inputs.len()), inputs, Precision::F32);
    let exponential = |inputs: &[&[usize]]| {
        let steps = vec![step(Function::Sub, &X[..2]), step(Function::Exp, &[Source::Step(0)])];
        problem(program(steps), inputs, Precision::F32)
    };
    let map: &[usize] = &[2, 3, 5, 6];
    vec![
        ("the wrong input", of(&[map, map]), "maps", Layout::C4, "v0 - v1", "v0 - v0"),
        (
            "the last vec4 left out",
            of(&[map, map]),
            "maps",
            Layout::C4,
            "i >= @elements",
            "i + 1u >= @elements",
        ),
        (
            "lanes beyond the channels",
            exponential(&[map, map]),
            "maps",
            Layout::C4,
            "vec4<bool>(",
            "vec4<bool>(true) | vec4<bool>(",
        ),
        ("the first row for all", of(&[map, &[3, 1, 6]]), "maps", Layout::C4, "@n6 * i2", "0u"),
        ("the first image for all", of(&[map, &[2, 1, 1, 6]]), "maps", Layout::C4, "@n5 * i0", "0u"),
        (
            "no one channel for all",
            of(&[map, &[5, 1]]),
            "maps",
            Layout::C4,
            "arg1[a5]",
            "arg1[a5], 0.0f, 0.0f, 0.0f",
        ),
        ("an axis left out", of(&[map, &[3, 1, 6]]), "rows", Layout::Nhwc, "i1 + ", "0u * i1 + "),
        ("another axis's extent", of(&[map, &[3, 1, 6]]), "rows", Layout::Nhwc, "a0 / @n1", "a0 / @n0"),
        ("the first of four for all", of(&[&[2, 3, 8], &[8]]), "rows", Layout::Nhwc, "arg1[", "arg1[0u * "),
        (
            "an element stored behind its place",
            of(&[map, &[3, 1, 6]]),
            "rows",
            Layout::Nhwc,
            "dst[i] =",
            "dst[i + 1u] =",
        ),
    ]
}

//! Reshapes and transposes behind operators that store their results with channels last.

use super::writer::{Attribute, File, Node, floats, integers};
use super::{run, tensor};
use diptych::{LoadOptions, Model};

const NAMES: [&str; 7] = ["v0", "v1", "v2", "v3", "v4", "v5", "v6"];
const SHAPES: [&str; 7] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"];

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % count
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut list: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            list.swap(place, self.below(place + 1));
        }
        list
    }

    /// Extents of so many elements: each of `factors`, in their order, is a factor of an axis.
    fn extents(&mut self, factors: &[usize]) -> Vec<usize> {
        let mut extents = vec![1];
        for factor in factors {
            let last = extents.len() - 1;
            match self.below(5) {
                0..=1 if extents.len() < 6 => extents.push(*factor),
                2 if extents.len() < 5 => extents.extend([1, *factor]),
                _ => extents[last] *= factor,
            }
        }
        extents
    }
}

fn transposed(extents: &[usize], values: &[f32], permutation: &[usize]) -> (Vec<usize>, Vec<f32>) {
    let strides: Vec<usize> = (0..extents.len()).map(|axis| extents[axis + 1..].iter().product()).collect();
    let target: Vec<usize> = permutation.iter().map(|&axis| extents[axis]).collect();
    let mut found = Vec::with_capacity(values.len());
    for index in 0..values.len() {
        let (mut rest, mut place) = (index, 0);
        for (&axis, &extent) in permutation.iter().zip(&target).rev() {
            place += rest % extent * strides[axis];
            rest /= extent;
        }
        found.push(values[place]);
    }
    (target, found)
}

#[test]
fn reshapes_and_transposes_of_maps_give_the_elements_of_the_file() {
    let mut random = Random(1);
    for round in 0..300 {
        let (mut extents, mut factors) = (vec![2, 6, 4, 5], vec![2, 3, 2, 2, 2, 5]);
        let count: usize = extents.iter().product();
        let input = tensor(&extents, (0..count).map(|at| at as f32).collect());
        let mut values: Vec<f32> = (0..count).map(|at| 2.0 * at as f32).collect();
        let mut constants = vec![floats("w", &[6, 1, 1, 1], &[2.0; 6])];
        let convolution = vec![Attribute::Int("group", 6)];
        let mut nodes = vec![Node { attributes: convolution, ..Node::new("Conv", &["x", "w"], &["v0"]) }];
        let mut told = Vec::new();
        for step in 1..=1 + random.below(5) {
            let [from, to] = [NAMES[step - 1], NAMES[step]];
            if random.below(2) == 0 {
                let permutation = random.shuffled(extents.len());
                let list: Vec<i64> = permutation.iter().map(|&axis| axis as i64).collect();
                let attributes = vec![Attribute::Ints("perm", list.leak())];
                nodes.push(Node { attributes, ..Node::new("Transpose", &[from], &[to]) });
                (extents, values) = transposed(&extents, &values, &permutation);
                told.push(format!("transpose {permutation:?}"));
                // The prime factors of the extents: a reshape joins and splits axes by them.
                let mut all = Vec::new();
                for mut extent in extents.iter().copied() {
                    for prime in [2, 3, 5] {
                        while extent % prime == 0 {
                            all.push(prime);
                            extent /= prime;
                        }
                    }
                }
                factors = all;
            } else {
                extents = random.extents(&factors);
                let list: Vec<i64> = extents.iter().map(|&extent| extent as i64).collect();
                constants.push(integers(SHAPES[step], &[list.len()], &list));
                nodes.push(Node::new("Reshape", &[from, SHAPES[step]], &[to]));
                told.push(format!("reshape {extents:?}"));
            }
        }
        let last = NAMES[told.len()];
        let wide = extents.last().copied().unwrap_or(1);
        if extents.len() > 1 && round % 2 == 0 {
            let matrix: Vec<f32> = (0..wide * 3).map(|at| (at % 5) as f32 - 2.0).collect();
            constants.push(floats("matrix", &[wide, 3], &matrix));
            nodes.push(Node::new("MatMul", &[last, "matrix"], &["y"]));
            let column = |row: &[f32], column: usize| -> f32 {
                row.iter().enumerate().map(|(at, x)| x * matrix[3 * at + column]).sum()
            };
            values = values
                .chunks(wide)
                .flat_map(|row| [column(row, 0), column(row, 1), column(row, 2)])
                .collect();
        } else {
            nodes.push(Node::new("Neg", &[last], &["y"]));
            values.iter_mut().for_each(|value| *value = -*value);
        }
        let file = File {
            inputs: vec![("x", vec![2, 6, 4, 5])],
            outputs: vec!["y"],
            constants,
            nodes,
            ..File::default()
        };
        assert_eq!(*run(&file, &input)[0].to_nhwc(), values, "{round}: {told:?}");
    }
}

/// A convolution, its pixels as tokens, a product with a summand, and a convolution of what is a map again.
#[test]
fn a_network_from_maps_to_tokens_and_back_moves_nothing() {
    let ints = |name, list: &'static [i64]| vec![Attribute::Ints(name, list)];
    let file = File {
        inputs: vec![("x", vec![1, 3, 4, 5])],
        outputs: vec!["y"],
        constants: vec![
            floats("w", &[8, 3, 1, 1], &[0.5; 24]),
            floats("matrix", &[8, 8], &[0.25; 64]),
            floats("v", &[8, 8, 3, 3], &[0.125; 576]),
            integers("tokens", &[3], &[1, 8, 20]),
            integers("map", &[4], &[1, 8, 4, 5]),
        ],
        nodes: vec![
            Node::new("Conv", &["x", "w"], &["a"]),
            Node::new("Reshape", &["a", "tokens"], &["b"]),
            Node { attributes: ints("perm", &[0, 2, 1]), ..Node::new("Transpose", &["b"], &["c"]) },
            Node::new("MatMul", &["c", "matrix"], &["d"]),
            Node::new("Add", &["d", "c"], &["e"]),
            Node { attributes: ints("perm", &[0, 2, 1]), ..Node::new("Transpose", &["e"], &["f"]) },
            Node::new("Reshape", &["f", "map"], &["g"]),
            Node { attributes: ints("pads", &[1; 4]), ..Node::new("Conv", &["g", "v"], &["h"]) },
            Node { attributes: ints("axes", &[2, 3]), ..Node::new("ReduceMean", &["h"], &["y"]) },
        ],
        ..File::default()
    };
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    // The input alone has its channels first.
    assert_eq!(model.info.transposes, 1);
}

#[test]
fn a_long_chain_of_reshapes_is_no_deep_recursion() {
    let count = 20_000;
    let names: Vec<&'static str> = (0..=count).map(|place| &*format!("r{place}").leak()).collect();
    let mut nodes = vec![Node::new("Conv", &["x", "w"], &[names[0]])];
    for place in 0..count {
        let shape = if place % 2 == 0 { "tokens" } else { "map" };
        nodes.push(Node::new("Reshape", &[names[place], shape], &[names[place + 1]]));
    }
    let file = File {
        inputs: vec![("x", vec![1, 2, 2, 3])],
        outputs: vec![names[count]],
        constants: vec![
            floats("w", &[4, 2, 1, 1], &[1.0; 8]),
            integers("tokens", &[3], &[1, 4, 6]),
            integers("map", &[4], &[1, 4, 2, 3]),
        ],
        nodes,
        ..File::default()
    };
    let bytes = file.bytes();
    // On the stack that a browser's page has.
    let read = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || Model::from_bytes(&bytes, &LoadOptions::default()).map(|model| model.info.transposes));
    let transposes = read.expect("a thread").join().expect("no panic").expect("a file that is read");
    // Of the input and of the output.
    assert_eq!(transposes, 2);
}

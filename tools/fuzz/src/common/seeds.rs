//! Files to begin with: ONNX networks from lines of text, and of the other formats what the library writes.

use super::noise::Noise;
use super::protobuf;
use super::tree::Tree;
use diptych::internals::tune::db::{Row, Timing, Verdict};
use diptych::internals::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
use diptych::{Database, Dialect, Limits, Precision};
use diptych_kernels::ops::{self, Op};
use std::path::{Path, PathBuf};

const LINES: &str = include_str!("../../seeds/onnx.txt");

/// A file for each line, and for each operator of a line that has several.
pub fn onnx() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("each ").and_then(|line| line.split_once(':')) {
            Some((operators, rest)) => {
                files.extend(operators.split_whitespace().map(|operator| file(&format!("{operator}{rest}"))));
            }
            None => files.push(file(line)),
        }
    }
    files
}

fn text(number: u32, text: &str) -> (u32, Tree) {
    (number, Tree::Bytes(text.as_bytes().to_vec()))
}

fn int(number: u32, value: i64) -> (u32, Tree) {
    (number, Tree::Number { value: value as u64, width: 0 })
}

fn file(line: &str) -> Vec<u8> {
    let opset = |domain, version| (8, Tree::Table(vec![text(1, domain), int(2, version)]));
    let graph = (7, Tree::Table(graph(line, &[])));
    (protobuf::FORMAT.write)(&Tree::Table(vec![int(1, 10), opset("", 23), opset("com.microsoft", 1), graph]))
}

/// A network; `given` are the inputs of one within a node.
fn graph(nodes: &str, given: &[&str]) -> Vec<(u32, Tree)> {
    let mut fields = Vec::new();
    let mut outputs: Vec<String> = Vec::new();
    for name in given {
        fields.push((11, Tree::Table(vec![text(1, name)])));
    }
    for (index, node) in parts(nodes, ';').into_iter().enumerate() {
        let (head, options) = parts(node, '|')
            .split_first()
            .map_or((node, ""), |(&head, rest)| (head, rest.first().copied().unwrap_or("")));
        let (inputs, named) = head.split_once("->").unwrap_or((head, ""));
        let mut words = inputs.split_whitespace();
        let operator = words.next().unwrap_or("");
        let mut own: Vec<(u32, Tree)> = words.map(|word| text(1, operand(word, &mut fields))).collect();
        outputs = named.split_whitespace().map(str::to_owned).collect();
        if outputs.is_empty() {
            outputs.push(format!("y{index}"));
        }
        own.extend(outputs.iter().map(|name| text(2, name)));
        let (domain, name) = operator.rsplit_once('.').unwrap_or(("", operator));
        own.extend([text(4, name), text(7, domain)]);
        own.extend(parts(options, ' ').into_iter().filter_map(option));
        fields.push((1, Tree::Table(own)));
    }
    let several = if given.is_empty() { outputs.len() } else { given.len().min(outputs.len()) };
    fields.extend(outputs.iter().take(several).map(|name| (12, Tree::Table(vec![text(1, name)]))));
    fields
}

/// The parts of a text between separators that are in no braces and no brackets.
fn parts(line: &str, separator: char) -> Vec<&str> {
    let mut depth = 0;
    let parts = line.split(move |c: char| {
        depth += i32::from(c == '{' || c == '[') - i32::from(c == '}' || c == ']');
        c == separator && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The name of an operand, which is added to the network where it is not an output.
fn operand<'a>(word: &'a str, fields: &mut Vec<(u32, Tree)>) -> &'a str {
    let Some((name, rest)) = word.split_once('[') else {
        return match word {
            "@0" => "g0",
            "@1" => "g1",
            "@2" => "g2",
            name => name,
        };
    };
    let (extents, kind) = rest.split_once(']').unwrap_or((rest, ""));
    let extents: Vec<u64> = extents.split(',').filter_map(|extent| extent.parse().ok()).collect();
    let count = extents.iter().product::<u64>();
    if kind.is_empty() {
        let dims = extents.iter().map(|&extent| (1, Tree::Table(vec![int(1, extent as i64)]))).collect();
        let tensor = Tree::Table(vec![int(1, 1), (2, Tree::Table(dims))]);
        fields.push((11, Tree::Table(vec![text(1, name), (2, Tree::Table(vec![(1, tensor)]))])));
        return name;
    }
    let mut own = vec![(1, Tree::Numbers { values: extents, width: 0 }), text(8, name)];
    let listed = kind.split_once('=').map_or("", |(_, values)| values);
    let mut values: Vec<u64> =
        listed.split(',').filter_map(|value| value.parse::<i64>().ok()).map(|value| value as u64).collect();
    values.resize(count as usize, values.last().copied().unwrap_or(1));
    match kind.as_bytes()[0] {
        b'*' => {
            let data = (0..count).flat_map(|index| (0.25 * (1 + index % 7) as f32).to_le_bytes());
            own.extend([int(2, 1), (9, Tree::Bytes(data.collect()))]);
        }
        b'u' => {
            own.extend([int(2, 2), (9, Tree::Bytes(values.iter().map(|&value| value as u8).collect()))]);
        }
        _ => own.extend([int(2, 7), (7, Tree::Numbers { values, width: 0 })]),
    }
    fields.push((5, Tree::Table(own)));
    name
}

fn option(option: &str) -> Option<(u32, Tree)> {
    let (name, value) = option.split_once('=')?;
    let mut own = vec![text(1, name)];
    let unquoted = |text: &str| text.trim_matches('\'').as_bytes().to_vec();
    if let Some(nodes) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
        let given: &[&str] = match name {
            "body" if nodes.contains("@2") => &["g0", "g1", "g2"],
            "body" => &["g0", "g1"],
            _ => &[],
        };
        own.extend([(6, Tree::Table(graph(nodes, given))), int(20, 5)]);
    } else if let Some(list) = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
        if list.contains('\'') {
            own.extend(list.split(',').map(|text| (9, Tree::Bytes(unquoted(text)))));
            own.push(int(20, 8));
        } else if list.contains('.') {
            let values = list.split(',').filter_map(|value| value.parse::<f32>().ok());
            let values = values.map(|value| u64::from(value.to_bits())).collect();
            own.extend([(7, Tree::Numbers { values, width: 4 }), int(20, 6)]);
        } else {
            let values = list.split(',').filter_map(|value| value.parse::<i64>().ok());
            let values = values.map(|value| value as u64).collect();
            own.extend([(8, Tree::Numbers { values, width: 0 }), int(20, 7)]);
        }
    } else if value.starts_with('\'') {
        own.extend([(4, Tree::Bytes(unquoted(value))), int(20, 3)]);
    } else if let Ok(value) = value.parse::<i64>() {
        own.extend([int(3, value), int(20, 2)]);
    } else {
        let value = value.parse::<f32>().ok()?;
        own.extend([(2, Tree::Number { value: value.to_bits().into(), width: 4 }), int(20, 1)]);
    }
    Some((5, Tree::Table(own)))
}

/// Files of NumPy's of two by three by two elements.
pub fn npy() -> Vec<Vec<u8>> {
    let file = |descr: &str, shape: &str, bytes: usize| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (text.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &vec![63; 12 * bytes]].concat()
    };
    [("<f4", 4), (">f2", 2), ("<f8", 8), ("|u1", 1), ("<i8", 8), ("|b1", 1), (">i4", 4)]
        .iter()
        .flat_map(|&(descr, bytes)| [file(descr, "(1, 2, 3, 2)", bytes), file(descr, "(12,)", bytes)])
        .collect()
}

/// Bytes for graphs.
pub fn graphs() -> Vec<Vec<u8>> {
    let mut noise = Noise::new(1);
    (0..64).map(|index| (0..40 + 4 * index).map(|_| noise.next() as u8).collect()).collect()
}

/// Records of the tuner, of one row and of several, and lines of other versions.
pub fn records() -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    let device = DeviceKey::of_family("NVIDIA", "Vulkan");
    let verdicts = [
        Verdict::Winner,
        Verdict::Loser,
        Verdict::Wrong { detail: "y[3]: found 1, wanted 2".into() },
        Verdict::Rejected { reason: "work-group of 2048".into() },
    ];
    for (op, verdict) in ops().into_iter().zip(verdicts.iter().cycle()) {
        let kernels = op.kernels();
        for (kernel, tile) in kernels.space(&Limits::webgpu()).into_iter().take(1) {
            let choice = kernel.choice(tile, [8, 8, 1]);
            let problem = ProblemKey::of(&*op, choice.layout);
            let time =
                Timing { median_ns: 1000, p10_ns: 900, p90_ns: 1200, samples: 9, default_ns: Some(1100) };
            let key = Key::new(&device, &problem, choice, Some(SourceHash::of(kernel.name())));
            rows.push(Row::measured(key, verdict.clone(), Some(time)));
        }
    }
    let text = |rows: &[Row]| {
        let mut database = Database::in_memory();
        let appended = database.append_all(rows.iter().cloned());
        appended.and_then(|()| database.text()).unwrap_or_default().into_bytes()
    };
    let mut records: Vec<Vec<u8>> = rows.chunks(1).chain(rows.chunks(5)).map(text).collect();
    records.push(b"{\"another\": [1, 2, {\"version\": null}]}\n{\"key\":{\"device\":".to_vec());
    records
}

/// Shaders: the kernels that the ops' examples run as, and two of an application's.
pub fn shaders() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for op in ops() {
        let limits = Limits::webgpu();
        let kernels = op.kernels();
        for (kernel, tile) in kernels.space(&limits).into_iter().take(1) {
            let made = kernel.work_groups(tile).first().copied();
            let choice = kernel.choice(tile, made.unwrap_or([8, 8, 1]));
            let written =
                kernel.plan(&choice, &limits).and_then(|launch| launch.spec.render_written(Dialect::Wgsl));
            texts.extend(written.ok().map(|source| source.text.into_bytes()));
        }
    }
    let custom = |body: &str| {
        format!(
            "struct P {{ scale: f32, count: u32 }}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> p: P;
var<workgroup> shared: array<f32, 64>;
fn f(a: f32, b: i32) -> f32 {{ var s = a; for (var i = 0; i < b; i++) {{ if s > 4.0 {{ break; }} s *= 1.5; }} return s; }}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
{body}
}}
"
        )
    };
    for body in [
        "shared[l] = x[id.x]; workgroupBarrier(); y[id.x] = vec4(f(shared[63u - l], 3) * p.scale);",
        "let v = vec3<i32>(id) / vec3(2, 0, -1); y[0].x = select(f32(v.x), bitcast<f32>(v.y), x[1] > 0.5);",
        "switch id.x % 3u { case 0u: { y[1] = vec4(x[0], x[1], 0.0, 1.0).wzyx; } default: { return; } }",
        "var a = array<f32, 4>(1.0, 2.0, 3.0, 4.0); let q = &a[id.y]; *q += unpack2x16float(p.count).x; y[2].w = dot(vec2(a[0], a[1]), vec2(2.0));",
        "loop { if id.x > arrayLength(&x) { break; } continuing { break if x[0] < 1.0; } } y[3] = fma(vec4(2.0), vec4(x[2]), exp2(vec4(x[3])));",
    ] {
        texts.push(custom(body).into_bytes());
    }
    texts.sort();
    texts.dedup();
    texts
}

fn ops() -> Vec<Box<dyn Op>> {
    ops::all().iter().filter_map(|entry| (entry.examples)(Precision::F32).ok()).flatten().collect()
}

/// The files in `folder`, in the order of their names; none if it cannot be read.
pub fn within(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

use super::*;
use crate::limits::Limits;
use crate::ops::gemm::{Gemm, GemmOp};

const UNKNOWN: Tensors = Tensors { input: None, output: None };
const FLOATS: Tensors = Tensors { input: Some(DType::F32), output: Some(DType::F32) };

/// The places of the seed's OpenCL predictor; its image layout is `Image2d`, its `kARM` the CPU with
/// the default precision and layout, float and NCHW.
fn opencl_places() -> Vec<Place> {
    let any = |layout| Place { target: Some(Target::OpenCl), precision: None, layout: Some(layout) };
    vec![
        Place::new(Target::OpenCl, Precision::F16, Layout::Image2d),
        Place::new(Target::OpenCl, Precision::F32, Layout::Nchw),
        any(Layout::Image2d),
        any(Layout::Nchw),
        Place::new(Target::Cpu, Precision::F32, Layout::Nchw),
    ]
}

fn conv2d(target: Target, precision: Precision, layout: Layout) -> Candidate {
    let variant = if layout == Layout::Image2d { "image2d" } else { "direct" };
    let kernel = KernelPlace { op: "conv2d", variant, target, precision, layout };
    Candidate { kernel, tensors: [precision.storage(); 2], obstacle: None }
}

/// The seed's kernels of conv2d: OpenCL float NCHW, OpenCL float image, CPU float NCHW; and a
/// half-float image kernel.
fn kernels() -> [Candidate; 4] {
    [
        conv2d(Target::OpenCl, Precision::F32, Layout::Nchw),
        conv2d(Target::OpenCl, Precision::F32, Layout::Image2d),
        conv2d(Target::Cpu, Precision::F32, Layout::Nchw),
        conv2d(Target::OpenCl, Precision::F16, Layout::Image2d),
    ]
}

fn grades(places: Vec<Place>, tensors: Tensors, candidates: &[Candidate]) -> Vec<(KernelPlace, Grade)> {
    let picked = Pick::Preference(places).pick("conv", tensors, candidates).expect("a kernel");
    let grade = |(kernel, verdict)| match verdict {
        Verdict::Grade(grade) => (kernel, grade),
        other => panic!("{kernel}: {other}"),
    };
    picked.ranking.into_iter().map(grade).collect()
}

#[test]
fn the_opencl_predictors_places_grade_as_worked_out_by_hand() {
    // With T = 2147483647, P = T / 2 = 1073741823, L = T / 4 = 536870911, weights 5/5 to 1/5, and
    // half-float input and output, which double the half-float kernel's scores only:
    //
    // | kernel          | place 1    | place 2      | place 3        | place 4      | place 5      |
    // |-----------------|------------|--------------|----------------|--------------|--------------|
    // | OpenCL f32 NCHW | T          | (T+P+L) 4/5  | (T+P) 3/5      | (T+P+L) 2/5  | (P+L) 1/5    |
    // | in units of T   | 1          | 1.4          | 0.9            | 0.7          | 0.15         |
    // | OpenCL f32 image| T+L        | (T+P) 4/5    | (T+P+L) 3/5    | (T+P) 2/5    | P 1/5        |
    // | in units of T   | 1.25       | 1.2          | 1.05           | 0.6          | 0.1          |
    // | CPU f32 NCHW    | 0          | (P+L) 4/5    | P 3/5          | (P+L) 2/5    | (T+P+L) 1/5  |
    // | in units of T   | 0          | 0.6          | 0.3            | 0.3          | 0.35         |
    // | OpenCL f16 image| 2 (T+P+L)  | 3.5 at place 1, the best that there is                      |
    const T: u64 = 2_147_483_647;
    const P: u64 = 1_073_741_823;
    const L: u64 = 536_870_911;
    let halves = Tensors { input: Some(DType::F16), output: Some(DType::F16) };
    let [nchw, image, cpu, half] = kernels();
    let found = grades(opencl_places(), halves, &kernels());
    let wanted =
        [(half, 2 * (T + P + L), 0, 5), (nchw, T + P + L, 1, 4), (image, T + L, 0, 5), (cpu, P + L, 1, 4)];
    assert_eq!(found.len(), wanted.len());
    for ((kernel, grade), (candidate, score, place, weight)) in found.into_iter().zip(wanted) {
        assert_eq!(kernel, candidate.kernel);
        assert_eq!((grade.score, grade.place), (score, place), "{kernel}");
        assert_eq!(grade.value(), (score * weight) as f64 / 5.0, "{kernel}");
    }
}

#[test]
fn tensors_of_the_kernels_storage_double_its_score() {
    // Float tensors double the three float kernels: 2.8, 2.5 and 1.2 against 1.75.
    let order: Vec<_> = grades(opencl_places(), FLOATS, &kernels());
    let values: Vec<String> =
        order.iter().map(|(_, grade)| format!("{:.2}", grade.value() / 2f64.powi(31))).collect();
    assert_eq!(values, ["2.80", "2.50", "1.75", "1.20"]);
    // One end that is stored otherwise is enough to lose the factor.
    let mixed = Tensors { input: Some(DType::F32), output: Some(DType::F16) };
    assert!(grades(opencl_places(), mixed, &kernels()).iter().all(|(_, grade)| !grade.same[3]));
    // Nothing known is no mismatch: all are doubled.
    assert!(grades(opencl_places(), UNKNOWN, &kernels()).iter().all(|(_, grade)| grade.same[3]));
}

#[test]
fn the_order_of_the_places_decides_between_layouts() {
    // NCHW before NHWC or the reverse, each with a kernel, in units of twice T: the kernel of the
    // first place's layout has 1.75 there; the other has 1.5 there, and only 1.75 / 2 at its own.
    let cpu = |layout| Place::new(Target::Cpu, Precision::F32, layout);
    let candidates = [Layout::Nhwc, Layout::Nchw].map(|layout| conv2d(Target::Cpu, Precision::F32, layout));
    for (first, second) in [(Layout::Nchw, Layout::Nhwc), (Layout::Nhwc, Layout::Nchw)] {
        let found = grades(vec![cpu(first), cpu(second)], FLOATS, &candidates);
        let layouts: Vec<Layout> = found.iter().map(|(kernel, _)| kernel.layout).collect();
        assert_eq!(layouts, [first, second]);
        assert_eq!(found[1].1.place, 0);
    }
}

#[test]
fn equal_grades_keep_the_first_kernel_and_the_first_place() {
    let anything = vec![Place::default(), Place::default()];
    let found = grades(anything, UNKNOWN, &kernels());
    let order: Vec<_> = found.iter().map(|(kernel, _)| *kernel).collect();
    assert_eq!(order, kernels().map(|candidate| candidate.kernel));
    // Both places allow anything; the second has half the weight.
    assert!(found.iter().all(|(_, grade)| grade.place == 0));
}

#[test]
fn the_pick_says_why() {
    let picked = Pick::Preference(opencl_places()).pick("conv", FLOATS, &kernels()).expect("a kernel");
    let text = picked.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "picked conv2d_direct (opencl, f32, nchw): grade 2.800 at place 2 of 5: \
         same target, precision, layout, tensor storage"
    );
    assert_eq!(
        lines[2],
        "   not conv2d_image2d (opencl, f16, image2d): grade 1.750 at place 1 of 5: \
         same target, precision, layout"
    );
}

#[test]
fn a_target_that_no_place_names_is_not_used() {
    let places = vec![Place::new(Target::Wgpu, Precision::F32, Layout::C4)];
    let error = Pick::Preference(places).pick("Conv2D_3", FLOATS, &kernels()).expect_err("nothing on wgpu");
    let text = error.to_string();
    assert!(text.starts_with("Conv2D_3 is not supported: "), "{text}");
    assert_eq!(text.matches("no place of the preference has target opencl").count(), 3, "{text}");
    assert_eq!(text.matches("no place of the preference has target cpu").count(), 1, "{text}");
    assert!(Pick::Preference(Vec::new()).pick("n", FLOATS, &kernels()).is_err());
    assert!(Pick::Preference(opencl_places()).pick("n", FLOATS, &[]).is_err());
}

#[test]
fn measured_times_decide_and_missing_ones_are_reported() {
    let [nchw, image, cpu, half] = kernels();
    let us = Duration::from_micros;
    let times = vec![
        (nchw.kernel, Some(us(40))),
        (image.kernel, Some(us(35))),
        (image.kernel, None),
        (nchw.kernel, Some(us(30))),
        (cpu.kernel, None),
    ];
    let pick = Pick::Measured(times);
    let picked = pick.pick("conv", FLOATS, &kernels()).expect("a timed kernel");
    assert_eq!(picked.winner, nchw.kernel);
    let verdicts: Vec<String> =
        picked.ranking.iter().map(|(kernel, verdict)| format!("{}: {verdict}", kernel.target)).collect();
    assert_eq!(
        verdicts,
        [
            "opencl: measured 30.000 us",
            "opencl: measured 35.000 us",
            "cpu: measured, with no valid time",
            "opencl: not measured"
        ]
    );
    // A kernel that cannot serve is not used, however fast it once was.
    let blocked = Candidate { obstacle: Some("the shape is odd".to_owned()), ..nchw };
    let picked = pick.pick("conv", FLOATS, &[blocked.clone(), image]).expect("the other");
    assert_eq!(picked.ranking[1].1, Verdict::Refused("the shape is odd".to_owned()));
    let text = pick.pick("conv", FLOATS, &[blocked, cpu, half]).expect_err("none left").to_string();
    for words in ["the shape is odd", "no valid time", "not measured", "(opencl, f16, image2d)"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn the_kernels_of_a_product_come_with_their_obstacles() {
    let op = GemmOp::new(7, 31, 5, 1, &Gemm::default(), false, false, Precision::F32).expect("a product");
    let mut candidates = on_device(&op, Precision::F32, &Limits::webgpu());
    candidates.extend(on_device(&op, Precision::F32, &Limits::opencl()));
    candidates.push(on_cpu(&op));
    let able: Vec<(Target, &str)> = candidates
        .iter()
        .filter(|candidate| candidate.obstacle.is_none())
        .map(|candidate| (candidate.kernel.target, candidate.kernel.variant))
        .collect();
    let wanted = [
        (Target::Wgpu, "micro"),
        (Target::OpenCl, "micro"),
        (Target::OpenCl, "image2d"),
        (Target::Cpu, "cpu"),
    ];
    assert_eq!(able, wanted);
    let images = Place { layout: Some(Layout::Image2d), ..Place::default() };
    let picked = Pick::Preference(vec![images]).pick("product", UNKNOWN, &candidates).expect("images");
    assert_eq!((picked.winner.target, picked.winner.layout), (Target::OpenCl, Layout::Image2d));
    let text = picked.to_string();
    for words in ["it needs whole vec4s, k is 5", "only in OpenCL C: WGSL has no images here"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_node_that_nothing_serves_lists_every_kernel() {
    // Halves on a device without them: nothing computes in f16.
    let op = GemmOp::new(8, 8, 8, 1, &Gemm::default(), false, false, Precision::F16).expect("a product");
    let candidates = on_device(&op, Precision::F16, &Limits::opencl());
    let error =
        Pick::Preference(vec![Place::default()]).pick("fc", UNKNOWN, &candidates).expect_err("no f16");
    let text = error.to_string();
    for kernel in ["gemm_vec4", "gemm_micro", "gemm_image2d"] {
        assert!(text.contains(&format!("{kernel} (opencl, f16, ")), "{text}");
    }
}

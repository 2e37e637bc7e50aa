//! Matrix products and single ops through a context, on every backend.

use diptych::internals::tune::db::{Row, Verdict};
use diptych::internals::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
use diptych::{
    Backend, Bits, Context, Conv2d, Database, Depthwise, Gemm, HostTensor, MatrixProduct, Memory, Padding,
    Pointwise, Precision, ProductOptions, Shape, SharedDatabase, Tuning,
};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::{Answer, Choice, Op, Operands};
use std::sync::{Arc, Mutex};

/// Without kernels on disk: to keep one costs PoCL a second compilation.
fn contexts() -> Vec<Context> {
    [Backend::Cpu, Backend::OpenCl, Backend::Wgpu]
        .into_iter()
        .filter_map(|backend| match Context::builder().backend(backend).without_kernel_cache().open() {
            Ok(context) => Some(context),
            Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => {
                panic!("{backend} is required: {error}")
            }
            Err(error) => {
                println!("skipped {backend}: {error}");
                None
            }
        })
        .collect()
}

/// Values of both signs that repeat with a long period.
fn pattern(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn check(context: &Context, op: GemmOp, options: ProductOptions) -> Result<(), diptych::Error> {
    let product = MatrixProduct::new(context, op, None, None, options)?;
    let (a, b, c) = (pattern(op.elements_a(), 1), pattern(op.elements_b(), 2), pattern(op.elements_c(), 3));
    product.write(Operand::A, |data| data.copy_from_slice(&a))?;
    product.write(Operand::B, |data| data.copy_from_slice(&b))?;
    product.write(Operand::C, |data| data.copy_from_slice(&c))?;
    product.run()?;
    let operands = [(Operand::A, a), (Operand::B, b), (Operand::C, c)];
    let operands: Operands<'_> =
        operands.into_iter().map(|(operand, values)| (operand, values.into())).collect();
    let wanted = op.reference(&operands, Answer::Exact)?;
    product.read(Operand::C, |found| {
        for (index, wanted) in wanted.value().iter().enumerate() {
            let (batch, row, column) = (index / op.n() / op.m(), index / op.n() % op.m(), index % op.n());
            let found = f64::from(found[op.index_c(batch, row, column)]);
            let error = (found - wanted).abs();
            let tolerance = 1e-6 * (op.k() as f64 + 4.0);
            assert!(error <= tolerance, "{} {op:?} [{row},{column}]: {found} {wanted}", context.info());
        }
    })
}

#[test]
fn a_product_with_leading_dimensions_and_beta_is_right_in_both_memories() {
    let options = Gemm {
        alpha: Bits(0.5),
        beta: Bits(-2.0),
        transpose_a: true,
        lda: Some(40),
        ldb: Some(37),
        ldc: Some(29),
        ..Default::default()
    };
    let op = GemmOp::new(33, 29, 17, 2, &options, false, false, Precision::F32).expect("extents");
    for context in contexts() {
        check(&context, op, ProductOptions::default()).expect("device memory");
        let mapped = ProductOptions { memory: Memory::HostVisible, ..Default::default() };
        match check(&context, op, mapped) {
            Ok(()) => {}
            Err(error @ diptych::Error::Unsupported { .. }) => println!("{}: {error}", context.info()),
            Err(error) => panic!("{}: {error}", context.info()),
        }
    }
}

/// A product of `precision` with `a` in one place of A, and how far each result is from the oracle in
/// units of the tolerance.
fn errors(context: &Context, precision: Precision, a_17: f32) -> (String, Vec<f64>) {
    let op = GemmOp::new(64, 96, 48, 1, &Gemm::default(), false, false, precision).expect("extents");
    let product = MatrixProduct::new(context, op, None, None, ProductOptions::default()).expect("a product");
    let (mut a, b) = (pattern(op.elements_a(), 1), pattern(op.elements_b(), 2));
    a[17] = a_17;
    product.write(Operand::A, |data| data.copy_from_slice(&a)).expect("A");
    product.write(Operand::B, |data| data.copy_from_slice(&b)).expect("B");
    product.run().expect("a run");
    let operands = Operands::from([(Operand::A, (&a[..]).into()), (Operand::B, (&b[..]).into())]);
    let wanted = op.reference(&operands, Answer::Exact).expect("operands of the op");
    let tolerance = |index| wanted.tolerance(index, precision);
    let found = product.read(Operand::C, |found| found.to_vec()).expect("C");
    let off = |(index, &found): (usize, &f32)| (f64::from(found) - wanted.value()[index]) / tolerance(index);
    (product.kernel().to_owned(), found.iter().enumerate().map(off).collect())
}

#[test]
fn a_product_that_may_use_matrix_units_runs_everywhere_and_says_what_it_computes_in() {
    for context in contexts() {
        let units = context.device().and_then(|device| device.info().limits.matrix_unit);
        for precision in [Precision::F32, Precision::Tf32, Precision::SplitF16] {
            let (kernel, errors) = errors(&context, precision, 0.5);
            println!("{}: {precision} by {kernel}", context.info());
            assert!(errors.iter().all(|error| error.abs() <= 1.0), "{} {kernel}", context.info());
            let exact = kernel.contains("_f32");
            let rounded = kernel.contains(&format!("_{precision}"));
            assert!(exact || (units.is_some() && rounded), "{} {precision}: {kernel}", context.info());
        }
    }
}

#[test]
fn a_value_beyond_the_range_of_halves_never_gives_a_wrong_number() {
    for context in contexts() {
        let (kernel, errors) = errors(&context, Precision::SplitF16, 1e5);
        let of_its_row = |error: &f64| error.abs() <= 1.0 || (!error.is_finite() && !kernel.contains("_f32"));
        assert!(errors[..96].iter().all(of_its_row), "{} {kernel}: {errors:?}", context.info());
        assert!(errors[96..].iter().all(|error| error.abs() <= 1.0), "{} {kernel}", context.info());
    }
}

#[test]
fn the_micro_tile_reads_b_from_an_image_on_opencl() {
    for (m, n, k) in [(8, 4, 4), (9, 31, 7), (64, 48, 32)] {
        let op = GemmOp::new(m, n, k, 2, &Gemm::default(), false, false, Precision::F32).expect("extents");
        for context in contexts() {
            let choice = Choice::new("image2d", [1, 8, 1], [8, 8, 1]);
            let Some(device) = context.device() else { continue };
            if op.kernel("image2d").is_ok_and(|kernel| !kernel.offers(&device.info().limits).is_empty()) {
                check(&context, op, ProductOptions { choice: Some(choice), ..Default::default() })
                    .expect("B as an image");
            } else {
                assert!(device.info().limits.max_image.is_none(), "{}", context.info());
            }
        }
    }
}

#[test]
fn single_ops_agree_between_backends() {
    let contexts = contexts();
    let x = HostTensor::new(Shape::nhwc(2, 7, 5, 6), pattern(420, 4)).expect("x");
    let w = HostTensor::new(Shape::nhwc(9, 3, 3, 6), pattern(486, 5)).expect("w");
    let d = HostTensor::new(Shape::nhwc(1, 3, 3, 12), pattern(108, 6)).expect("d");
    let p = HostTensor::new(Shape::nhwc(5, 1, 1, 6), pattern(30, 7)).expect("p");
    let bias = HostTensor::vector(pattern(9, 8)).expect("bias");
    let conv = Conv2d { stride: [2, 1], padding: Padding::Same, ..Default::default() };
    let depth = Depthwise { padding: Padding::Same, ..Default::default() };
    let all = |context: &Context| {
        vec![
            context.conv2d(&x, &w, Some(&bias), &conv).expect("conv2d"),
            context.depthwise(&x, &d, None, &depth).expect("depthwise"),
            context.pointwise(&x, &p, None, &Pointwise::default()).expect("pointwise"),
            context
                .gemm(
                    &HostTensor::matrix(2, 3, 4, pattern(24, 9)).expect("a"),
                    &HostTensor::matrix(1, 4, 6, pattern(24, 10)).expect("b"),
                    None,
                    &Gemm::default(),
                )
                .expect("gemm"),
        ]
    };
    let wanted = all(&contexts[0]);
    for context in &contexts[1..] {
        for (found, wanted) in all(context).iter().zip(&wanted) {
            assert_eq!(found.shape(), wanted.shape());
            for (found, wanted) in found.to_f32().iter().zip(wanted.to_f32().iter()) {
                assert!((found - wanted).abs() < 2e-5, "{}: {found} {wanted}", context.info());
            }
        }
    }
}

#[test]
fn a_product_refuses_what_does_not_fit() {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let matrix =
        |rows, columns| HostTensor::matrix(1, rows, columns, vec![1.0; rows * columns]).expect("a matrix");
    let text = |result: diptych::Result<HostTensor>| result.expect_err("does not fit").to_string();
    let inner = text(context.gemm(&matrix(2, 3), &matrix(4, 2), None, &Gemm::default()));
    assert!(inner.contains("found 3 and 4"), "{inner}");
    let beta = Gemm { beta: Bits(1.0), ..Default::default() };
    assert!(text(context.gemm(&matrix(2, 3), &matrix(3, 2), None, &beta)).contains("no C"));
    let packed = Gemm { lda: Some(8), ..Default::default() };
    assert!(text(context.gemm(&matrix(2, 3), &matrix(3, 2), None, &packed)).contains("lda"));
}

#[test]
fn an_operand_that_was_never_written_is_zero() {
    for context in contexts() {
        for memory in [Memory::Device, Memory::HostVisible] {
            for round in 0..3 {
                let op = GemmOp::new(64, 64, 64, 1, &Gemm::default(), false, false, Precision::F32);
                let options = ProductOptions { memory, ..Default::default() };
                let product = match MatrixProduct::new(&context, op.expect("extents"), None, None, options) {
                    Ok(product) => product,
                    Err(error @ diptych::Error::Unsupported { .. }) if memory == Memory::HostVisible => {
                        println!("{}: {error}", context.info());
                        break;
                    }
                    Err(error) => panic!("{}: {error}", context.info()),
                };
                for operand in [Operand::A, Operand::B, Operand::C] {
                    let zeros = product.read(operand, |data| data.iter().all(|value| value.to_bits() == 0));
                    assert!(zeros.expect("a read"), "{} {memory:?} round {round}", context.info());
                    product.write(operand, |data| data.fill(f32::NAN)).expect("for the next round to find");
                }
            }
        }
    }
}

/// The product of `k` terms in ones and twos: two kernels at least for different `k`.
fn product_of(context: &Context, k: usize) -> f32 {
    let op = GemmOp::new(5, 6, k, 1, &Gemm::default(), false, false, Precision::F32).expect("extents");
    let product = MatrixProduct::new(context, op, None, None, ProductOptions::default()).expect("a product");
    product.write(Operand::A, |a| a.fill(1.0)).expect("A");
    product.write(Operand::B, |b| b.fill(2.0)).expect("B");
    product.run().expect("a run");
    product.read(Operand::C, |c| c[0]).expect("C")
}

#[test]
fn kept_kernels_that_changed_places_are_compiled_anew_and_replaced() {
    for backend in [Backend::OpenCl, Backend::Wgpu] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("kernels");
        let run = || {
            let Ok(context) = Context::new(backend) else { return false };
            context.keep_kernels(Some(directory.path()));
            // Rows of whole vec4s or not, and an image of conversions: kernels of different arguments.
            for k in [3, 8] {
                assert_eq!(product_of(&context, k), 2.0 * k as f32, "{}", context.info());
            }
            let x = HostTensor::new(Shape::nhwc(1, 3, 3, 5), vec![1.0; 45]).expect("x");
            let w = HostTensor::new(Shape::nhwc(2, 1, 1, 5), vec![1.0; 10]).expect("w");
            let y = context.pointwise(&x, &w, None, &Pointwise::default()).expect("pointwise");
            assert!(y.to_f32().iter().all(|&y| y == 5.0), "{}", context.info());
            true
        };
        if !run() {
            println!("skipped {backend}");
            continue;
        }
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("an entry").path())
            .collect();
        if files.len() < 2 {
            println!("skipped: {backend} keeps {} kernels", files.len());
            continue;
        }
        files.sort();
        let contents: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a file")).collect();
        for (place, file) in files.iter().enumerate() {
            std::fs::write(file, &contents[(place + 1) % contents.len()]).expect("changed places");
        }
        assert!(run());
        for (place, file) in files.iter().enumerate() {
            let healed = std::fs::read(file).expect("a file");
            assert!(healed != contents[(place + 1) % contents.len()], "{backend}: {}", file.display());
        }
        let read = || files.iter().map(|file| std::fs::read(file).expect("a file"));
        let before: Vec<_> = read().collect();
        assert!(run());
        assert!(before.into_iter().eq(read()), "{backend}: a file that is right stays");
    }
}

/// A record of one verdict: this choice won for this op on this device.
fn record(device: &Context, op: &GemmOp, choice: Choice) -> SharedDatabase {
    let info = device.device().expect("a device").info();
    let source = SourceHash::of_kernel(op, &choice, &info.limits).ok();
    let key = Key::new(&DeviceKey::of(info), &ProblemKey::in_layout(op, op.record_layout()), choice, source);
    let mut database = Database::in_memory();
    database.append(Row::measured(key, Verdict::Winner, None)).expect("in memory");
    Arc::new(Mutex::new(database))
}

#[test]
fn a_product_asks_the_record() {
    let of =
        |m, n, k| GemmOp::new(m, n, k, 1, &Gemm::default(), false, false, Precision::F32).expect("extents");
    let (op, other) = (of(96, 80, 64), of(5, 3, 700));
    for context in contexts() {
        let Some(device) = context.device() else { continue };
        let limits = &device.info().limits;
        let made = |op, options| MatrixProduct::new(&context, op, None, None, options).expect("a product");
        let by_rule = made(op, ProductOptions::default());
        assert_eq!(by_rule.source(), "rule", "{}", context.info());
        // Another kernel than the rule's, that the product has.
        let kernels = op.kernels();
        let choices = kernels.space(limits).into_iter().map(|(kernel, tile)| {
            let work_group = kernel.work_groups(tile).into_iter().next();
            work_group.map(|work_group| kernel.choice(tile, work_group))
        });
        let label = |choice: Choice| {
            let options = ProductOptions { choice: Some(choice), ..ProductOptions::default() };
            let made = MatrixProduct::new(&context, op, None, None, options);
            made.map(|product| (product.kernel().to_owned(), product.source().to_owned())).ok()
        };
        let other_choice = choices.flatten().find_map(|choice| {
            let (label, source) = label(choice)?;
            assert_eq!(source, "by hand");
            (label != by_rule.kernel()).then_some((choice, label))
        });
        let (choice, label) = other_choice.expect("a second kernel");
        let known = record(&context, &op, choice);
        let tuned = ProductOptions { tuning: Tuning::Database(Arc::clone(&known)), ..Default::default() };
        let product = made(op, tuned.clone());
        assert_eq!(product.kernel(), label, "{}", context.info());
        assert_eq!(product.source(), "measured", "{}", context.info());
        check(&context, op, tuned.clone()).expect("a tuned product");
        // Another problem has no verdict.
        assert_eq!(made(other, tuned).source(), "rule", "{}", context.info());
        // The context's own record, which its products ask without being told.
        context.use_record(Some(Arc::clone(&known)));
        assert_eq!(made(op, ProductOptions::default()).kernel(), label);
        let a = HostTensor::matrix(1, 96, 64, pattern(96 * 64, 1)).expect("A");
        let b = HostTensor::matrix(1, 64, 80, pattern(64 * 80, 2)).expect("B");
        let tuned = context.gemm(&a, &b, None, &Gemm::default()).expect("a product");
        context.use_record(None);
        assert_eq!(made(op, ProductOptions::default()).source(), "rule");
        let plain = context.gemm(&a, &b, None, &Gemm::default()).expect("a product");
        for (tuned, plain) in tuned.to_f32().iter().zip(plain.to_f32().iter()) {
            assert!((tuned - plain).abs() <= 1e-4, "{}: {tuned}, {plain}", context.info());
        }
    }
}

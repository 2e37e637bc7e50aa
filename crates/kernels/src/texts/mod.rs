//! Every kernel in both languages: it renders, naga accepts it, and one text of each is the one that was
//! reviewed.

#[cfg(feature = "shaders")]
mod writers;

use crate::dtype::Precision;
use crate::emit::{Activation, Dialect, KernelSource, Template};
use crate::layout::Layout;
use crate::limits::{Family, Limits, MatrixUnit};
use crate::ops::{self, BoundKernel, Choice, Launch, Op, OpEntry};
#[cfg(feature = "shaders")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;

const WORK_GROUPS: [[u32; 3]; 3] = [[8, 4, 8], [1, 1, 1], [3, 5, 2]];

/// The work-groups that `walk` shows of a kernel, at most `most`: those that it is made for, or else all
/// sorts.
fn work_groups(kernel: &dyn BoundKernel, tile: [u32; 3], most: usize) -> Vec<[u32; 3]> {
    let made_for = kernel.work_groups(tile);
    let groups = if made_for.is_empty() { WORK_GROUPS.to_vec() } else { made_for };
    groups.into_iter().take(most).collect()
}

fn limits(dialect: Dialect) -> Limits {
    let mut limits = match dialect {
        Dialect::Wgsl => Limits::webgpu(),
        Dialect::OpenClC => Limits::opencl(),
    };
    limits.native_half = true;
    if dialect == Dialect::OpenClC {
        // Some kernels are for OpenCL on a CPU alone, and none is left out there.
        limits.family = Family::CpuDriver;
    }
    limits.local_memory = 49152;
    limits.subgroup = (dialect == Dialect::Wgsl).then_some([4, 128]);
    limits.matrix_unit = Some(match dialect {
        Dialect::Wgsl => MatrixUnit::Cooperative { subgroup: 32 },
        Dialect::OpenClC => MatrixUnit::Ptx { capability: 90, warp_groups: true },
    });
    limits
}

/// Every example problem, variant and tile in `dialect` that is made for `precision`, the first tile of each
/// variant in several work-groups.
fn walk(dialect: Dialect, precision: Precision, visit: impl FnMut(&OpEntry, &dyn Op, Choice)) {
    walk_within(&limits(dialect), precision, visit);
}

/// Calls `visit` for every example problem, variant and tile that is made for `precision` on a device of these limits, in their
/// dialect; the first tile of each variant comes in several work-groups.
fn walk_within(limits: &Limits, precision: Precision, mut visit: impl FnMut(&OpEntry, &dyn Op, Choice)) {
    let dialect = limits.dialect;
    for entry in ops::all() {
        let examples = (entry.examples)(precision).expect("examples are valid").into_iter();
        for example in examples.filter(|example| example.precision() == precision) {
            let mut shown = BTreeSet::new();
            let kernels = example.kernels();
            for (kernel, tile) in kernels.space(limits) {
                let variant = kernel.name();
                let described = entry.variants().into_iter().find(|described| described.name == variant);
                assert!(described.is_some(), "{} {variant} is not in the registry", entry.name);
                if described.is_some_and(|described| described.speaks(dialect)) {
                    let most = if shown.insert(variant) { WORK_GROUPS.len() } else { 1 };
                    for work_group in work_groups(kernel, tile, most) {
                        let choice = Choice::new(variant, tile, work_group);
                        for &layout in kernel.entry().layouts {
                            let choice = choice.with_layout(layout);
                            if kernel.fits(&choice, limits).is_err() {
                                continue;
                            }
                            // The kernels without matrix units are those of f32.
                            let another = kernel
                                .plan(&choice, limits)
                                .is_ok_and(|launch| launch.spec.precision != precision);
                            if !another && (layout != Layout::Image2d || dialect == Dialect::OpenClC) {
                                visit(entry, &*example, choice);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// An example whose kernels have all sorts of tiles.
fn pointwise() -> Box<dyn Op> {
    let entry = ops::all().iter().find(|entry| entry.name == "pointwise").expect("the op");
    (entry.examples)(Precision::F32).expect("examples").remove(0)
}

fn plan(op: &dyn Op, choice: &Choice, limits: &Limits) -> crate::error::Result<Launch> {
    op.kernel(choice.variant)?.plan(choice, limits)
}

fn render(op: &dyn Op, choice: &Choice, dialect: Dialect) -> KernelSource {
    let launch =
        plan(op, choice, &limits(dialect)).unwrap_or_else(|error| panic!("{op:?} {choice}: {error}"));
    launch.spec.render(dialect).unwrap_or_else(|error| panic!("{op:?} {choice}: {error}"))
}

#[test]
fn every_variant_is_used_by_an_example_in_every_language_it_has() {
    for dialect in Dialect::ALL {
        let mut used = BTreeSet::new();
        // The matrix kernels serve one precision each, the others f32 as well.
        for precision in Precision::ALL {
            walk(dialect, precision, |entry, _, choice| {
                used.insert((entry.name, choice.variant));
            });
        }
        for entry in ops::all() {
            for variant in entry.variants().into_iter().filter(|variant| variant.speaks(dialect)) {
                assert!(used.contains(&(entry.name, variant.name)), "{} {}", entry.name, variant.name);
            }
        }
    }
}

/// With `DIPTYCH_CONFORMANCE=full` in every work-group, and every tile in every precision.
#[cfg(feature = "shaders")]
#[test]
fn every_kernel_renders_in_every_precision_and_naga_accepts_it() {
    let full = std::env::var("DIPTYCH_CONFORMANCE").is_ok_and(|value| value == "full");
    let mut failures = Vec::new();
    for dialect in Dialect::ALL {
        for precision in Precision::ALL {
            let mut kernels = 0;
            let mut seen = BTreeSet::new();
            walk(dialect, precision, |entry, op, choice| {
                let launch = plan(op, &choice, &limits(dialect)).expect("a plan");
                kernels += 1;
                // A text depends little on the work-group, and how it depends on the tile little on the precision.
                // OpenCL C is written from the same text.
                let key = (
                    entry.name,
                    choice.variant,
                    if precision == Precision::F32 && dialect == Dialect::Wgsl {
                        choice.tile
                    } else {
                        [0; 3]
                    },
                    launch.spec.epilogue.label(),
                    choice.layout == Layout::C4,
                );
                if !seen.insert(key) && !full {
                    return;
                }
                let written = launch.spec.render_written(dialect).expect("a text");
                assert!(!written.text.contains("${") && !written.text.contains("//%"), "{}", written.text);
                let result = match dialect {
                    Dialect::Wgsl => crate::emit::check::check(&written).map(drop),
                    Dialect::OpenClC => written.into_opencl().map(drop),
                };
                if let Err(error) = result {
                    failures.push(format!("{op:?} {choice}: {error}"));
                }
            });
            let ordinary = precision.without_matrix_units() == precision;
            assert!(!ordinary || kernels > 100, "{dialect} {precision}: only {kernels} kernels");
        }
    }
    assert!(failures.is_empty(), "{} failures, the first:\n{}", failures.len(), failures[0]);
}

/// Some activations call a function, which stands in front of the kernel's own text.
#[cfg(feature = "shaders")]
#[test]
fn every_kernel_renders_with_an_activation_that_is_a_function() {
    for dialect in Dialect::ALL {
        for precision in Precision::ALL {
            let mut seen = BTreeSet::new();
            walk(dialect, precision, |entry, op, choice| {
                if !seen.insert((entry.name, choice.variant)) {
                    return;
                }
                let mut spec = plan(op, &choice, &limits(dialect)).expect("a plan").spec;
                spec.epilogue.activation = Activation::Gelu;
                let written = spec.render_written(dialect).expect("a text");
                assert!(written.text.contains("gelu("), "{}", written.text);
                let result = match dialect {
                    Dialect::Wgsl => crate::emit::check::check(&written).map(drop),
                    Dialect::OpenClC => written.into_opencl().map(drop),
                };
                assert!(result.is_ok(), "{} {choice}: {result:?}", entry.name);
            });
        }
    }
}

/// The smallest tile of each kernel, in the language that it is written in, and of one kernel of each op what
/// is printed from it.
#[cfg(feature = "shaders")]
#[test]
fn the_rendered_text_is_the_one_that_was_reviewed() {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut precisions = BTreeMap::new();
    for dialect in Dialect::ALL {
        for precision in [Precision::F32, Precision::F16Storage, Precision::Tf32, Precision::SplitF16] {
            walk(dialect, precision, |entry, op, choice| {
                let images = if choice.layout == Layout::Image2d { "_image2d" } else { "" };
                let name = format!("{}_{}{images}", entry.name, choice.variant);
                let printed = dialect == Dialect::OpenClC
                    && precision != Precision::F32
                    && matches!(choice.variant, "direct" | "staged" | "thin" | "unpack");
                // The texts of the other precisions are longer.
                let key = (dialect.folder_and_ending(), name.clone());
                let first = *precisions.entry(key).or_insert(precision) == precision;
                if !first && !printed {
                    return;
                }
                let launch = plan(op, &choice, &limits(dialect)).expect("a plan");
                let mut review = |source: KernelSource| {
                    let name = format!("{name}.{}", source.dialect.folder_and_ending().1);
                    if texts.get(&name).is_none_or(|known| source.text.len() < known.len()) {
                        texts.insert(name, source.text);
                    }
                };
                if printed {
                    review(launch.spec.render(dialect).expect("a text"));
                }
                if first {
                    review(launch.spec.render_written(dialect).expect("a text"));
                }
            });
        }
    }
    for (name, text) in texts {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, text);
        });
    }
}

#[cfg(feature = "shaders")]
#[test]
fn an_opencl_text_that_names_no_extent_serves_every_work_group() {
    let example = pointwise();
    let text = |variant, tile, work_group, dialect| {
        render(&*example, &Choice::new(variant, tile, work_group), dialect).text
    };
    let micro = |work_group, dialect| text("micro", [4, 2, 1], work_group, dialect);
    assert_eq!(micro([8, 4, 1], Dialect::OpenClC), micro([2, 1, 3], Dialect::OpenClC));
    assert_ne!(micro([8, 4, 1], Dialect::Wgsl), micro([2, 1, 3], Dialect::Wgsl));
    // A split's addresses depend on the extents, and its local memory too.
    let split = |work_group| text("split", [4, 1, 4], work_group, Dialect::OpenClC);
    assert_ne!(split([8, 4, 4]), split([2, 1, 4]));
    assert!(split([2, 1, 4]).contains("reqd_work_group_size(2, 1, 4)"));
}

#[test]
fn a_label_names_op_variant_precision_tile_epilogue_and_work_group() {
    let example = pointwise();
    let choice = Choice::new("micro", [4, 2, 1], [8, 4, 1]);
    let launch = plan(&*example, &choice, &limits(Dialect::Wgsl)).expect("a plan");
    assert_eq!(launch.spec.label(), "pointwise_micro_f32_t4x2x1_bias_relu6_wg8x4x1");
    assert_eq!(launch.grid, [21, 3, 1]);
    assert_eq!(launch.groups(), [3, 1, 1]);
}

#[test]
fn a_name_that_the_spec_does_not_give_is_an_error_that_names_the_template() {
    let example = pointwise();
    let choice = Choice::new("micro", [1, 1, 1], [8, 4, 1]);
    let mut spec = plan(&*example, &choice, &limits(Dialect::Wgsl)).expect("a plan").spec;
    spec.template = Some(Template { dialect: Dialect::Wgsl, text: "${no_such_name}" });
    let text = spec.render(Dialect::Wgsl).expect_err("no such name").to_string();
    assert!(text.contains("shaders/pointwise/micro.wgsl"), "{text}");
    spec.template = Some(Template { dialect: Dialect::OpenClC, text: "" });
    let text = spec.render(Dialect::Wgsl).expect_err("no text in WGSL").to_string();
    assert!(text.contains("not written in that language"), "{text}");
}

/// The CPU's activation and the oracle's agree, so that a wrong GPU text cannot hide behind one.
#[test]
fn apply_and_reference_agree() {
    for activation in ops::ACTIVATIONS {
        for step in -80..=80 {
            let x = step as f32 / 8.0;
            let (cpu, oracle) =
                (f64::from(activation.apply(x, -0.25)), activation.reference(f64::from(x), -0.25));
            assert!(
                (cpu - oracle).abs() <= 1e-6 * oracle.abs().max(1.0),
                "{activation:?}({x}): {cpu} {oracle}"
            );
        }
    }
    assert_eq!(Activation::Relu6.apply(7.0, 0.0), 6.0);
}

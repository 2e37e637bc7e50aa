//! `diptych candidates` and `diptych emit`: what stands on standard output, to the letter.

use std::process::{Command, Output};

fn diptych(line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_diptych");
    Command::new(program).args(line.split_whitespace()).output().expect("the program starts")
}

/// Standard output of a command that must succeed and print nothing else.
fn printed(line: &str) -> String {
    let output = diptych(line);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{line}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Standard error of a command that must fail with exit code 1 and print nothing else.
fn refused(line: &str) -> String {
    let output = diptych(line);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(output.stdout.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn each_generator_prints_its_sizes_and_nothing_else() {
    // The sizes are worked out in the tests of the library's generators.
    for (line, wanted) in [
        ("gl-conv --grid 9,9,256", "8 4 8\n"),
        ("gl-conv --grid 9,9,256 --family adreno", "2 8 16\n"),
        ("gl-conv --grid 9,9,1 --family adreno3xx --dst-depth 8", "4 4 8\n"),
        ("gl-conv --grid 9,9,1 --family mali --dst-depth 2", "16 8 2\n"),
        ("gl-default --grid 9,9,15", "16 8 8\n"),
        ("gl-default --grid 9,9,33 --family mali", "2 2 32\n"),
        ("tflite-fast --grid 9,9,256 --max-size 256 --max-dims 256,256,64", "5 6 8\n"),
        ("tflite-conv-fast --grid 9,9,256", "9 1 16\n"),
        ("tflite-conv-fast --grid 9,9,256 --family adreno", "4 1 64\n"),
        ("tflite-conv-fast --grid 9,9,256 --family adreno3xx", "9 1 16\n"),
        ("tflite-conv-fast --grid 9,9,256 --family adreno --max-dims 256,256,16", "9 1 16\n"),
        ("tflite-exhaustive --grid 4,6,4 --max-size 64", "4 6 2\n4 2 4\n4 3 4\n2 6 4\n"),
        ("tflite-exhaustive --grid 4,6,4 --max-size 64 --max-dims 256,3,256", "4 2 4\n4 3 4\n"),
        ("tflite-exhaustive --grid 5,1,1 --max-dims 4,4,4", "1 1 1\n"),
        ("tflite-unaligned --grid 1,1,1 --max-size 32", "2 4 4\n4 2 4\n4 4 2\n"),
        ("paddle --grid 32,9,256", "1 9 8\n"),
        ("paddle --grid 32,9,256 --divisor 1", "1 9 16\n"),
        ("paddle --grid 32,9,256 --reverse", "8 9 1\n"),
        ("paddle --grid 32,4,8 --user-max 64", "1 4 8\n"),
    ] {
        assert_eq!(printed(&format!("candidates --generator {line}")), wanted, "{line}");
    }
}

#[test]
fn a_rule_without_a_work_group_is_an_error() {
    for line in [
        "tflite-fast --grid 16,16,8 --max-size 4",
        "tflite-exhaustive --grid 0,4,4",
        "tflite-unaligned --grid 4,4,4 --max-size 0",
        "paddle --grid 4,4,0",
    ] {
        let text = refused(&format!("candidates --generator {line}"));
        assert!(text.starts_with("error: the rule has no work-group for grid "), "{line}: {text}");
    }
}

#[test]
fn emit_heads_each_kernel_with_its_label_and_work_group() {
    for (line, wanted) in [
        ("conv2d --variant direct", "conv2d_direct_f32_t4x1x1_bias_relu6_wg1x4x8, work-group (1,4,8)"),
        ("convert", "convert_pack_f32_t1x1x1_wg16x16x1, work-group (16,16,1)"),
        ("gemm --variant vec4", "gemm_vec4_f32_t1x8x1_wg8x8x1, work-group (8,8,1)"),
        ("gemm --shape 7,31,5", "gemm_micro_f32_t1x1x1_wg8x8x1, work-group (8,8,1)"),
        (
            "gemm --variant vec4 --tile 2,8,1 --precision f16s",
            "gemm_vec4_f16s_t2x8x1_wg8x8x1, work-group (8,8,1)",
        ),
        (
            "pointwise --variant direct --work-group 1,1,1",
            "pointwise_direct_f32_t1x1x1_bias_relu6_wg1x1x1, work-group (1,1,1)",
        ),
        (
            "pointwise --variant direct --family adreno",
            "pointwise_direct_f32_t1x1x1_bias_relu6_wg2x8x16, work-group (2,8,16)",
        ),
    ] {
        for backend in ["wgsl", "opencl"] {
            let text = printed(&format!("emit {line} --backend {backend}"));
            let first = text.lines().next().expect("a line");
            assert_eq!(first, format!("// {wanted}"), "{line} in {backend}");
        }
    }
}

#[test]
fn what_is_emitted_is_a_kernel_of_the_language() {
    for op in ["conv2d", "convert", "depthwise", "gemm", "pointwise"] {
        for precision in ["f32", "f16s", "f16"] {
            let text = printed(&format!("emit {op} --backend wgsl --precision {precision}"));
            naga::front::wgsl::parse_str(&text)
                .unwrap_or_else(|error| panic!("{op} {precision}: {}", error.emit_to_string(&text)));
            let text = printed(&format!("emit {op} --backend opencl --precision {precision}"));
            assert!(text.contains(&format!("void {op}_")) && text.contains("__kernel"), "{op}: {text}");
        }
    }
}

#[test]
fn every_op_is_emitted_in_both_languages() {
    for entry in diptych_kernels::ops::all() {
        for backend in ["wgsl", "opencl"] {
            let text = printed(&format!("emit {} --backend {backend}", entry.name));
            assert!(text.contains(&format!("{}_", entry.name)), "{} in {backend}: {text}", entry.name);
        }
    }
}

#[test]
fn emit_says_why_it_cannot() {
    for (line, words) in [
        ("gemm --backend wgsl --variant image2d", "the device takes no images as kernel arguments"),
        (
            "gemm --backend opencl --variant fast",
            "gemm has no variant \"fast\"; it has tiled, thin, staged, vec4, split, micro, image2d",
        ),
        ("gemm --backend opencl --tile 3,3,3 --variant micro", "tile is not one of"),
        ("gemm --backend opencl --shape 1,2", "found 2 numbers, wanted m,n,k or m,n,k,batch"),
        ("gemm --backend opencl --shape 0,2,2", "m = 0"),
        ("conv2d --backend wgsl --work-group 512,1,1", "512 invocations, the device allows 256"),
        ("conv2d --backend wgsl --work-group 0,1,1", "is empty"),
        ("conv2d --backend wgsl --tile 0,0,0", "tile is not one of"),
    ] {
        let text = refused(&format!("emit {line}"));
        assert!(text.contains(words), "no {words:?} for {line}: {text}");
    }
}

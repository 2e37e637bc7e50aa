//! Kernels with instructions that only one architecture has.
//!
//! NVIDIA's OpenCL compiles for `sm_90`, and PTX has Hopper's `wgmma` for `sm_90a` alone. But its program
//! binaries are PTX, which it also takes. So such an instruction is in a comment of the inline
//! assembly, `asm volatile("/*sm_90a wgmma.fence.sync.aligned; */")`, for which the driver sets aside
//! the operands' registers; in the PTX that comes of it the comment is opened and the target changed,
//! and the driver makes the program of that.
//!
//! Nothing of this is promised. So a device is asked once, when it is opened, whether it takes a kernel
//! of this kind ([`question`]), and [`crate::limits::MatrixUnit::Ptx`] says what it answered.

use crate::emit::{Dialect, Interface, KernelSource};
use crate::error::{Error, Result};

/// How an instruction of the architecture begins and ends.
const OPEN: &str = "/*sm_90a ";
const CLOSE: &str = "*/";

/// The target that the driver compiles for, and the one that has the instructions.
const FOUND: &str = ".target sm_90";
const WANTED: &str = ".target sm_90a";

/// Whether `text` holds instructions of the architecture.
pub(super) fn is_needed(text: &str) -> bool {
    text.contains(OPEN)
}

/// The driver's PTX with the instructions in it, for the architecture that has them; NUL at the end.
///
/// # Errors
/// If it is not PTX for the target that is known.
pub(super) fn retarget(label: &str, binary: &[u8]) -> Result<String> {
    let ptx = String::from_utf8_lossy(binary);
    let ptx = ptx.trim_end_matches('\0');
    let wrong =
        |found: String, wanted: &str| Error::input(format!("program binary of {label}"), found, wanted);
    let Some((before, after)) = ptx.split_once(FOUND) else {
        let begin: String = ptx.chars().take(60).collect();
        return Err(wrong(format!("{begin:?}"), "PTX for sm_90"));
    };
    if after.starts_with(|next: char| next.is_ascii_alphanumeric()) {
        let target: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
        return Err(wrong(format!("{FOUND}{target}"), FOUND));
    }
    let mut text = format!("{before}{WANTED}");
    let mut pieces = after.split(OPEN);
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let Some((instruction, rest)) = piece.split_once(CLOSE) else {
            return Err(wrong(format!("{OPEN:?} without an end"), CLOSE));
        };
        text.push_str(instruction);
        text.push_str(rest);
    }
    text.push('\0');
    Ok(text)
}

/// A kernel that a driver takes if it takes `wgmma` with `local_memory` bytes of local memory.
pub(super) fn question(local_memory: u32) -> KernelSource {
    let entry = "takes_warp_groups";
    let text = format!(
        "__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void {entry}(__global uint* restrict dst) {{
    __local uint staged[{words}] __attribute__((aligned(1024)));
    const uint lid = get_local_id(0);
    for (uint i = lid; i < {words}u; i += 128u) {{
        staged[i] = i;
    }}
    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong at = 0x4000004000010000ul + ((uint)(size_t)staged >> 4);
    float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
    asm volatile(\"{OPEN}wgmma.fence.sync.aligned; {CLOSE}\" ::: \"memory\");
    asm volatile(\"{OPEN}{{ .reg .pred add; setp.eq.u32 add, 0, 0; \
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%0, %1, %2, %3}}, %4, %5, add, 1, 1, 0, 0; }} {CLOSE}\" \
: \"+f\"(sum0), \"+f\"(sum1), \"+f\"(sum2), \"+f\"(sum3) : \"l\"(at), \"l\"(at));
    asm volatile(\"{OPEN}wgmma.commit_group.sync.aligned; {CLOSE}\" ::: \"memory\");
    asm volatile(\"{OPEN}wgmma.wait_group.sync.aligned 0; {CLOSE}\" \
: \"+f\"(sum0), \"+f\"(sum1), \"+f\"(sum2), \"+f\"(sum3) :: \"memory\");
    dst[get_global_id(0)] = as_uint(sum0 + sum1 + sum2 + sum3) + staged[{words}u - 1u - lid];
}}
",
        words = local_memory / 4,
    );
    KernelSource {
        label: entry.to_owned(),
        entry: entry.to_owned(),
        dialect: Dialect::OpenClC,
        text,
        interface: Interface { bindings: Vec::new(), params: Vec::new() },
        work_group: [128, 1, 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_the_architecture_become_instructions() {
        let ptx =
            b".version 9.0\n.target sm_90, texmode_independent\n// kept\n/*sm_90a wgmma.fence; */ ret;\0";
        let text = retarget("k", ptx).expect("PTX for sm_90");
        assert_eq!(text, ".version 9.0\n.target sm_90a, texmode_independent\n// kept\nwgmma.fence;  ret;\0");
    }

    #[test]
    fn what_is_not_ptx_for_the_known_target_is_refused_by_what_it_is() {
        for (binary, said) in [
            (&b"\x7fELF\x02"[..], "ELF"),
            (b".target sm_100", "PTX for sm_90"),
            (b".target sm_90a", ".target sm_90a"),
            (b".target sm_90\n/*sm_90a ret;", "without an end"),
        ] {
            let error = retarget("k", binary).expect_err("not what is known").to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn the_question_needs_the_architecture_and_all_the_memory() {
        let source = question(1 << 16);
        assert!(is_needed(&source.text) && source.text.contains("staged[16384]"), "{}", source.text);
        assert!(!is_needed("asm volatile(\"wgmma.fence.sync.aligned;\")"));
    }
}

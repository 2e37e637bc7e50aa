//! `CUDA_VISIBLE_DEVICES`, by which schedulers give each worker cards of its own. NVIDIA's OpenCL driver honours it
//! by itself, its Vulkan driver does not: `wgpu/visible.rs` does.

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// Which of NVIDIA's cards are to be seen: what the variable says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible(pub(crate) String);

impl Visible {
    /// What the environment says, also if it says that there are none.
    pub fn from_environment() -> Option<Self> {
        if cfg!(target_family = "wasm") {
            return None;
        }
        std::env::var(VARIABLE).ok().map(Visible)
    }

    /// The variable and its value, for messages.
    pub fn told(&self) -> String {
        format!("{VARIABLE}={}", self.0)
    }
}

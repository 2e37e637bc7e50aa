//! What the texts of a convolution as a matrix product are given.

use super::convolution::Convolution;
use super::kernel::Constants;
use super::spec::{self, Params};

/// What the texts of an op are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextArguments {
    /// Whether they gather windows of more than a tap.
    pub(super) windows: bool,
    /// Their scalars.
    pub(super) params: fn(&Convolution, [u32; 3]) -> Params,
}

impl TextArguments {
    /// The constants of the window, where there is one, `behind` and `own`.
    pub(super) fn constants(self, problem: &Convolution, behind: Constants, own: Constants) -> Constants {
        if self.windows { [spec::window_constants(problem), behind, own].concat() } else { own }
    }
}

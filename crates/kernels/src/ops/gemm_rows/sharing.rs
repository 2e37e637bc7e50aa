//! How the invocations of a work-group share the rows of a nest.

use super::GemmRowsOp;
use crate::emit::Value;
use crate::ops::kernel::Constants;
use crate::ops::loops::RowsWithin;
use crate::ops::spec::extent;

/// The rows of the nest in a work-group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sharing {
    /// Invocations of a row: a power of two.
    pub(super) lanes: u32,
    /// Places of local memory for what each invocation found.
    pub(super) slots: u32,
}

impl GemmRowsOp {
    /// So many rows shared by `all` invocations, which are as many or more.
    pub(super) fn sharing(&self, rows: u32, all: u32) -> Sharing {
        let longest = extent(self.nest.places_of_row()).max(1).next_power_of_two();
        let of_row = (all / rows.max(1)).max(1);
        let lanes = (1 << of_row.ilog2()).min(longest);
        Sharing { lanes, slots: all.next_multiple_of(lanes) }
    }

    /// Bytes of local memory for `staged` vec4s, and for what invocations find.
    pub(super) fn local_bytes_of(&self, staged: u32, sharing: Sharing) -> u32 {
        let (is_wide, _, has_places) = self.nest.kinds_of_product();
        let each = if is_wide { 16 } else { 4 };
        let found = if sharing.lanes > 1 { 2 * sharing.slots * each } else { 0 };
        16 * staged + found * (1 + u32::from(has_places))
    }

    /// The statements of the nest for a kernel that has a `native_half` type or not.
    pub(super) fn rows_within(&self, sharing: Sharing, native_half: bool) -> RowsWithin {
        self.nest.of_product(self.source, self.product.n(), sharing.lanes, native_half)
    }

    /// The constants of a text, `own` among them, which keeps `staged` vec4s of the product.
    pub(super) fn constants_and(
        &self,
        own: &[(&'static str, u32)],
        staged: u32,
        sharing: Sharing,
    ) -> Constants {
        let (is_wide, word, _) = self.nest.kinds_of_product();
        let all = [
            ("STAGED", staged),
            ("LANES", sharing.lanes),
            ("APART", 1),
            ("SLOTS", sharing.slots),
            ("WIDE", u32::from(is_wide)),
            ("WORD", word),
        ];
        own.iter().copied().chain(all).map(|(name, value)| (name, Value::U32(value))).collect()
    }
}

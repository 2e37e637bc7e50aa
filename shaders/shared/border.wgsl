//# The place in 0..extent that has the element at `at`, counted from `before` places in front of 0; the last place for
//# what lies further out than the window goes.
//% include "shared/coordinate"

fn bordered(at: u32, before: u32, extent: u32) -> u32 {
    return min(u32(coordinate(i32(at) - i32(before), i32(extent))), extent - 1u);
}


//# The coordinate that the rule makes of `at`: 2 a mirror image without the edge, 3 with it, 4 the edge, 5 the
//# next copy.
fn coordinate(at: i32, extent: i32) -> i32 {
    //% if RULE == 2
    let before: i32 = abs(at);
    return select(before, 2 * (extent - 1) - before, before >= extent);
    //% elif RULE == 3
    let before: i32 = select(at, -1 - at, at < 0);
    return select(before, 2 * extent - 1 - before, before >= extent);
    //% elif RULE == 4
    return clamp(at, 0, extent - 1);
    //% else
    return at % extent;
    //% endif
}

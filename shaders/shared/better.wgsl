//# Whether x takes the place of `other`, which came before it. A NaN takes that of any number, and no number its place; it
//# is found by its bits because WGSL lets an implementation assume that there is none.
//% if SOURCE != 0
//% set element = "i32" if SOURCE == 1 else "u32"
fn better(x: ${element}, other: ${element}) -> bool {
    return x ${">" if LARGEST else "<"} other;
}
//% else
fn better(x: f32, other: f32) -> bool {
    let is_nan: bool = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    let is_left: bool = (bitcast<u32>(other) & 0x7fffffffu) > 0x7f800000u;
    return !is_left && (is_nan || x ${">" if LARGEST else "<"} other);
}
//% endif

//# Whether x takes the place of `other`, which came before it: not if one of them is a NaN, found by its bits because
//# WGSL lets an implementation assume that there is none.
//% if SOURCE != 0
//% set element = "i32" if SOURCE == 1 else "u32"
fn better(x: ${element}, other: ${element}) -> bool {
    return x ${">" if LARGEST else "<"} other;
}
//% else
fn better(x: f32, other: f32) -> bool {
    let bits: u32 = max(bitcast<u32>(x) & 0x7fffffffu, bitcast<u32>(other) & 0x7fffffffu);
    //% if LARGEST
    return bits <= 0x7f800000u && x > other;
    //% else
    return bits <= 0x7f800000u && x < other;
    //% endif
}
//% endif

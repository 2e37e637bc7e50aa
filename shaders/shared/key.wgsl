//# A number that is larger for a larger value. Of f32 the same for both zeros, the largest for what is no number, which
//# is found by its bits because WGSL lets an implementation assume that there is none.
//% if SOURCE == 1
fn key(value: i32) -> u32 {
    return bitcast<u32>(value) ^ 0x80000000u;
}
//% elif SOURCE == 2
fn key(value: u32) -> u32 {
    return value;
}
//% else
fn key(value: f32) -> u32 {
    let bits: u32 = bitcast<u32>(value);
    let size: u32 = bits & 0x7fffffffu;
    let positive: u32 = bits | 0x80000000u;
    let ordered: u32 = select(positive, ~bits, bits != size && size != 0u);
    return select(ordered, 0xffffffffu, size > 0x7f800000u);
}
//% endif

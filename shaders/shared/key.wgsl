//# A number that is larger for a larger value: the same for both zeros, the largest for what is no number, which
//# is found by its bits because WGSL lets an implementation assume that there is none.
fn key(value: f32) -> u32 {
    let bits: u32 = bitcast<u32>(value);
    let size: u32 = bits & 0x7fffffffu;
    let positive: u32 = bits | 0x80000000u;
    let ordered: u32 = select(positive, ~bits, bits != size && size != 0u);
    return select(ordered, 0xffffffffu, size > 0x7f800000u);
}

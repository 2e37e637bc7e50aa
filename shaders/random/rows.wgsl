//# y = numbers of a distribution, of a stream that the key begins: four elements per invocation, in lines of WIDTH
//# invocations. DRAW is 1 for uniform, 2 for normal and 3 for Gumbel's numbers; if it is 0, y is the key of the next run,
//# made by one invocation.
${constants}

${interface}
//% if DRAW > 0
//% include "shared/exact"
//# The high word of a product.
fn high(a: u32, b: u32) -> u32 {
    let low: u32 = (a & 0xffffu) * (b & 0xffffu);
    let middle: u32 = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other: u32 = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
}

//# Philox4x32-10.
fn philox(begin: vec4<u32>, own: vec2<u32>) -> vec4<u32> {
    var counter: vec4<u32> = begin;
    var key: vec2<u32> = own;
    for (var round: u32 = 0u; round < 10u; round++) {
        let third: u32 = high(counter.z, 0xcd9e8d57u) ^ counter.y ^ key.x;
        let first: u32 = high(counter.x, 0xd2511f53u) ^ counter.w ^ key.y;
        counter = vec4<u32>(third, counter.z * 0xcd9e8d57u, first, counter.x * 0xd2511f53u);
        key = key + vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return counter;
}

//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn random_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let block: u32 = gid.x + WIDTH * gid.y;
    let i: u32 = 4u * block;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    //% for word in range(4)
    let key${word}: u32 = ${stored("src", word ~ "u")};
    //% endfor
    //% if DRAW == 0
    let run: u32 = key2 + 1u;
    ${store("dst", "0u", "key0")}
    ${store("dst", "1u", "key1")}
    ${store("dst", "2u", "run")}
    ${store("dst", "3u", "select(key3, key3 + 1u, run == 0u)")}
    //% else
    let own: vec2<u32> = vec2<u32>(key0 ^ params.stream0, key1 ^ params.stream1);
    let words: vec4<u32> = philox(vec4<u32>(block, 0u, key2, key3), own);
    //% if DRAW == 2
    let first: vec2<f32> = normals(words.x, words.y);
    let second: vec2<f32> = normals(words.z, words.w);
    let drawn: vec4<f32> = vec4<f32>(first.x, first.y, second.x, second.y);
    //% endif
    //% for lane in range(4)
    //% if DRAW == 1
    let u${lane}: f32 = product(f32(words[${lane}] >> 8u), 5.9604645e-8f);
    let y${lane}: f32 = min(term(u${lane}, params.span, params.low), params.end);
    //% elif DRAW == 2
    let y${lane}: f32 = term(drawn[${lane}], params.deviation, params.mean);
    //% else
    let scaled${lane}: vec2<f32> = parts(exponential(words[${lane}]));
    let y${lane}: f32 = minus_log(scaled${lane}.x, scaled${lane}.y);
    //% endif
    if (i + ${lane}u < params.elements) {
        ${store("dst", "i + " ~ lane ~ "u", "y" ~ lane)}
    }
    //% endfor
    //% endif
}

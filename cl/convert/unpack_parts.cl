//# C4 to several NHWC maps, one behind the other: map p has the channels from FIRST<p> to the first
//# of the next. One vec4 per invocation.
${constants}

__kernel void convert_unpack_parts(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint channel = 4u * (gid.z % dst_c4);
    const uint n = gid.z / dst_c4;
    const uint pixel = gid.x + dst_w * (gid.y + dst_h * n);
    const uint pixels = dst_w * dst_h * batch;
    const ${acc4} v = ${load4("src", "gid.x + dst_w * (gid.y + dst_h * gid.z)")};
    //% for l in range(4)
    const uint c${l} = channel + ${l}u;
    //% for p in range(PARTS)
    if (c${l} >= FIRST${p} && c${l} < FIRST${p + 1}) {
        const uint place = pixels * FIRST${p} + pixel * (FIRST${p + 1} - FIRST${p}) + c${l} - FIRST${p};
        ${store("dst", "place", "v." ~ ["x", "y", "z", "w"][l])}
    }
    //% endfor
    //% endfor
}

//# Ends all work-groups of reduction `reduction` but the one that arrives last, which goes on with what all of them have
//# found in `told`, and leaves the scratch memory zero. `groups` work-groups each store the four words of `mine`, group
//# `own` from word 4 own on. Four words are exchanged at once: see `ops/arrival.rs`, which says why this is sound. One
//# barrier behind it.
    let counter: u32 = reduction * (1u + 4u * groups);
    if (lid.x == 0u) {
        //% for lane in ["x", "y", "z", "w"]
        let bits${loop.index0}: u32 = bitcast<u32>(mine.${lane});
        atomicStore(&scratch[counter + 1u + 4u * own + ${loop.index0}u],
            select(~bits${loop.index0}, 0x803fffffu, bits${loop.index0} == 0xffffffffu));
        //% endfor
        let arrived: u32 = atomicAdd(&scratch[counter], 1u);
        //# Nobody adds behind the last one. PoCL 3.1 leaves this out behind the return.
        if (arrived + 1u == groups) {
            atomicStore(&scratch[counter], 0u);
        }
        before = arrived;
    }
    if (workgroupUniformLoad(&before) + 1u != groups) {
        return;
    }
    let words: u32 = 4u * groups;
    for (var t: u32 = lid.x; t < words; t += 4u * SIZE) {
        //% for j in range(4)
        var word${j}: u32 = 1u;
        if (t + ${j}u * SIZE < words) {
            word${j} = atomicExchange(&scratch[counter + 1u + t + ${j}u * SIZE], 0u);
        }
        //% endfor
        //% for j in range(4)
        for (var spin: u32 = 0u; spin < SPINS; spin++) {
            if (word${j} != 0u) {
                break;
            }
            word${j} = atomicExchange(&scratch[counter + 1u + t + ${j}u * SIZE], 0u);
        }
        if (t + ${j}u * SIZE < words) {
            ${told}[t + ${j}u * SIZE] = bitcast<f32>(~word${j});
        }
        //% endfor
    }
    ${barrier};

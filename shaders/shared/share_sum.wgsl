//# Adds `partial` up over each `shares` invocations that follow each other, for the first of them. There must be a
//# barrier before `partial` is written again.
    //% for half in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if half < shares
    ${barrier};
    if (lid.x % ${shares}u < ${half}u) {
        partial[lid.x] = partial[lid.x] + partial[lid.x + ${half}u];
    }
    //% endfor

//# Adds up `part` over the SIZE invocations of a work-group, in halves, into `partial[0]`.
    partial[lid.x] = part;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = partial[lid.x] + partial[lid.x + ${parts}u];
    }
    //% endfor
    ${barrier};

//! Wrong kernels that the harness must refuse: a harness that cannot fail proves nothing.

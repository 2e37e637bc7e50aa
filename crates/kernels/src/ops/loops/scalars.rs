//! Names of the scalars of a nest's kernel.

macro_rules! names {
    ($($name:literal)*) => { [$($name),*] };
}

/// Names of whole numbers as scalars of a kernel.
pub(super) const WHOLE: [&str; 80] = names!(
    "n0" "n1" "n2" "n3" "n4" "n5" "n6" "n7" "n8" "n9" "n10" "n11" "n12" "n13" "n14" "n15" "n16" "n17" "n18" "n19"
    "n20" "n21" "n22" "n23" "n24" "n25" "n26" "n27" "n28" "n29" "n30" "n31" "n32" "n33" "n34" "n35" "n36" "n37" "n38" "n39"
    "n40" "n41" "n42" "n43" "n44" "n45" "n46" "n47" "n48" "n49" "n50" "n51" "n52" "n53" "n54" "n55" "n56" "n57" "n58" "n59"
    "n60" "n61" "n62" "n63" "n64" "n65" "n66" "n67" "n68" "n69" "n70" "n71" "n72" "n73" "n74" "n75" "n76" "n77" "n78" "n79"
);

/// Names of the numbers of a formula.
pub(super) const FLOATS: [&str; 32] = names!(
    "f0" "f1" "f2" "f3" "f4" "f5" "f6" "f7" "f8" "f9" "f10" "f11" "f12" "f13" "f14" "f15" "f16" "f17" "f18" "f19"
    "f20" "f21" "f22" "f23" "f24" "f25" "f26" "f27" "f28" "f29" "f30" "f31"
);

/// Names of whole numbers within the kernel of another op, which has scalars such as `n4` itself.
pub(super) const WHOLE_WITHIN: [&str; 32] = names!(
    "w0" "w1" "w2" "w3" "w4" "w5" "w6" "w7" "w8" "w9" "w10" "w11" "w12" "w13" "w14" "w15"
    "w16" "w17" "w18" "w19" "w20" "w21" "w22" "w23" "w24" "w25" "w26" "w27" "w28" "w29" "w30" "w31"
);

/// Names of the numbers of a formula within the kernel of another op.
pub(super) const FLOATS_WITHIN: [&str; 16] =
    names!("g0" "g1" "g2" "g3" "g4" "g5" "g6" "g7" "g8" "g9" "g10" "g11" "g12" "g13" "g14" "g15");

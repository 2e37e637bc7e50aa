//! Mistakes that can be planted into rewrites, to see that the comparison of rewrites with what they replace finds each.
//!
//! A crate that is built with `DIPTYCH_MISTAKES` set makes the one that the variable `DIPTYCH_MISTAKE` names when it runs
//! (`scripts/mistakes`). Any other build has none of them.

/// Whether to make the mistake of this name.
#[inline]
pub(crate) fn planted(mistake: &str) -> bool {
    option_env!("DIPTYCH_MISTAKES").is_some()
        && std::env::var("DIPTYCH_MISTAKE").is_ok_and(|own| own == mistake)
}

//! Pooling by powers.

use super::builder::Builder;
use super::operand::Operand;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// `(sum |x|^p)^(1/p)`, where `sum` adds up the powers of windows or of axes.
pub(crate) fn root_of_powers(
    b: &mut Builder,
    x: Operand,
    p: f32,
    sum: &mut dyn FnMut(&mut Builder, Operand) -> Result<Operand, Reason>,
) -> Result<Operand, Reason> {
    if !(p.is_finite() && p > 0.0) {
        return refused!("found p {p}, wanted a number above 0");
    }
    let powers = match p {
        1.0 => b.apply("sizes", Function::Abs, &[x.into()])?,
        2.0 => b.apply("squares", Function::Square, &[x.into()])?,
        _ => {
            let sizes = b.apply("sizes", Function::Abs, &[x.into()])?;
            b.apply("powers", Function::Pow, &[sizes.into(), p.into()])?
        }
    };
    let sum = sum(b, powers)?;
    match p {
        1.0 => b.apply("", Function::Abs, &[sum.into()]),
        2.0 => b.apply("", Function::Sqrt, &[sum.into()]),
        _ => b.apply("", Function::Pow, &[sum.into(), (1.0 / p).into()]),
    }
}

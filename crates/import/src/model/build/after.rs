//! What follows the sums of an operator: a bias that is computed at each run, and a function of each element.

use super::builder::Builder;
use super::operand::Operand;
use crate::emit::Activation;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The activation that the operator's own node applies, and the function that is left to a node after it.
fn split(after: Option<Function>) -> (Activation, Option<Function>) {
    match after {
        Some(Function::Relu) => (Activation::Relu, None),
        Some(Function::Relu6) => (Activation::Relu6, None),
        Some(Function::Tanh) => (Activation::Tanh, None),
        other => (Activation::None, other),
    }
}

/// The function of each element that an activation is, if it is any.
pub(crate) fn function_of(activation: Activation) -> Option<Function> {
    [Function::Relu, Function::Relu6, Function::Tanh]
        .into_iter()
        .find(|&function| split(Some(function)).0 == activation)
}

/// What `add` adds, then the summand, then the function. `add` takes the function where its node can apply it.
pub(crate) fn finished(
    b: &mut Builder,
    summand: Option<Operand>,
    after: Option<Function>,
    add: impl FnOnce(&mut Builder, Activation) -> Result<Operand, Reason>,
) -> Result<Operand, Reason> {
    let (activation, rest) = if summand.is_some() { (Activation::None, after) } else { split(after) };
    if summand.is_none() && rest.is_none() {
        return add(b, activation);
    }
    let mut sums = b.within("sum", |b| add(b, activation))?;
    if let Some(summand) = summand {
        let part = if rest.is_some() { "biased" } else { "" };
        sums = b.apply(part, Function::Add, &[sums.into(), summand.into()])?;
    }
    match rest {
        Some(function) => b.apply("", function, &[sums.into()]),
        None => Ok(sums),
    }
}

/// What `add` adds, and the function that an activation is behind it, where no node of `add` applies it.
pub(crate) fn activated(
    b: &mut Builder,
    activation: Activation,
    add: impl FnOnce(&mut Builder) -> Result<Operand, Reason>,
) -> Result<Operand, Reason> {
    let Some(function) = function_of(activation) else { return add(b) };
    let x = b.within("before", add)?;
    b.apply("", function, &[x.into()])
}

impl Builder {
    /// What `add` adds, whose nodes are those of a part of the operator.
    pub(crate) fn within<T>(
        &mut self,
        part: &str,
        add: impl FnOnce(&mut Self) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        let inner = format!("{}/{part}", self.current);
        self.budget.spend(inner.len())?;
        let outer = std::mem::replace(&mut self.current, inner);
        let added = add(self);
        self.current = outer;
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_the_nodes_own_or_one_behind_it() {
        assert_eq!(split(Some(Function::Relu6)), (Activation::Relu6, None));
        assert_eq!(split(Some(Function::ReluN1To1)), (Activation::None, Some(Function::ReluN1To1)));
        assert_eq!(split(None), (Activation::None, None));
        assert_eq!(function_of(Activation::Tanh), Some(Function::Tanh));
        assert_eq!(function_of(Activation::None), None);
    }
}

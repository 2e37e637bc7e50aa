//! What several operators need alike: angles, masks and places that all layers share.

use super::builder::Builder;
use super::operand::Operand;
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use std::fmt::Write;

impl Builder {
    /// What `make` makes of operands, or made of the same ones before. `how` says in which way.
    pub(crate) fn once(
        &mut self,
        how: &str,
        of: &[&Operand],
        make: impl FnOnce(&mut Self) -> Result<Operand, Reason>,
    ) -> Result<Operand, Reason> {
        let mut key = how.to_owned();
        for operand in of {
            identify(operand, &mut key)?;
        }
        // Some operators are read into a graph of their own.
        let of_this = |known: &Operand| match known {
            Operand::Value(mapped) => self.dims(mapped.value).is_ok(),
            Operand::Constant(..) => true,
        };
        if let Some((_, known)) = self.known.get(&key).filter(|(_, known)| of_this(known)) {
            return Ok(known.clone());
        }
        let made = make(self)?;
        self.budget.spend(key.len())?;
        // Constants stay in memory with it, so that no other one takes their place.
        let of = of.iter().map(|&operand| operand.clone()).collect();
        self.known.insert(key, (of, made.clone()));
        Ok(made)
    }
}

/// Which operand it is: a value by its number, a constant by where its elements are.
fn identify(operand: &Operand, key: &mut String) -> Result<(), Reason> {
    let kind = operand.kind();
    let written = match operand {
        Operand::Value(mapped) => write!(key, " {:?} {:?} {kind:?}", mapped.value, mapped.order),
        Operand::Constant(Constant::Integers(own), _) => {
            write!(key, " {:p} {:?} {kind:?}", own.values.as_ptr(), own.dims)
        }
        Operand::Constant(Constant::Floats(own), _) => {
            write!(key, " {:p} {} {:?} {kind:?}", own.bytes().as_ptr(), own.dims(), own.layout())
        }
    };
    written.map_err(|_| Reason::from("found no memory for a name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::budget::Budget;
    use crate::ops::elementwise::Function;

    #[test]
    fn what_operators_share_is_made_once_in_each_graph() {
        let b = &mut Builder::new(Budget::new(1000), 0, crate::model::prepared);
        let numbers =
            |b: &mut Builder| b.counted(3, 0, 1).and_then(|own| b.kept("numbers", own)).expect("numbers");
        let more = |b: &mut Builder, how: &str, x: &Operand| {
            let made = b.once(how, &[x], |b| b.apply("more", Function::Add, &[x.clone().into(), 1.0.into()]));
            b.mapped(made.expect("a sum")).expect("a value").value
        };
        let (x, other) = (numbers(b), numbers(b));
        let first = more(b, "more", &x);
        assert_eq!(more(b, "more", &x), first);
        assert_ne!(more(b, "more", &other), first);
        assert_ne!(more(b, "another", &x), first);
        let constant = Operand::integers(vec![2], vec![1, 2]);
        let make = |b: &mut Builder| {
            let made = b.once("kept", &[&constant], |b| b.kept("kept", constant.clone())).expect("kept");
            b.mapped(made).expect("a value").value
        };
        let first = make(b);
        assert_eq!(make(b), first);
        b.graph = crate::graph::Graph::new();
        let second = make(b);
        assert_ne!(second, first);
        assert!(b.dims(second).is_ok());
    }
}

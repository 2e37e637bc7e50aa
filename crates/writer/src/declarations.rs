//! Where variables are declared.

use super::analysis::{BlockId, Declared, Walk};

impl Walk<'_> {
    /// A variable is declared in the innermost block around all that uses it: by the first of these
    /// statements where it stores the whole, else before it. What is declared outside loops stays outside.
    pub(super) fn place_declarations(&mut self) {
        for (&local, occurrences) in &self.occurrences {
            if self.out.logicals.contains_key(&local) {
                continue;
            }
            let Some(&(first_block, first_number, stored)) = occurrences.first() else { continue };
            let init = self.function.local_variables[local].init;
            let within = |block: BlockId| {
                occurrences.iter().all(|&(other, ..)| self.path(other).iter().any(|(at, _)| *at == block))
            };
            // The numbers of the statements of `block` that use it.
            let numbers = |block: BlockId| -> Vec<usize> {
                let number = |&(other, own, _): &(BlockId, usize, bool)| match other == block {
                    true => own,
                    false => self.path(other).iter().find(|(at, _)| *at == block).map_or(0, |(_, at)| *at),
                };
                occurrences.iter().map(number).collect()
            };
            if stored && init.is_none() && within(first_block) {
                let for_loop = numbers(first_block).iter().skip(1).all(|number| *number == first_number + 1);
                self.out.declared.insert(local, Declared::ByStore { for_loop });
                continue;
            }
            // The blocks around the first use, from the inside; outside of all loops only.
            let path = self.path(first_block);
            let outside = path
                .iter()
                .rposition(|(block, _)| self.parents.get(block).is_some_and(|(_, _, repeated)| *repeated))
                .map_or(0, |innermost| innermost + 1);
            let place = path.iter().skip(outside).find(|(block, _)| within(*block)).or(path.last());
            let Some(&(block, number)) = place else { continue };
            let number = if block == first_block { first_number } else { number };
            let for_loop = numbers(block).iter().all(|other| *other == number);
            self.out.declared.insert(local, Declared::Before { block, number, for_loop });
        }
    }

    /// The blocks from `block` outwards, each with the number of its statement that leads inwards.
    fn path(&self, block: BlockId) -> Vec<(BlockId, usize)> {
        let mut path = vec![(block, 0)];
        let mut at = block;
        while let Some(&(parent, number, _)) = self.parents.get(&at) {
            path.push((parent, number));
            at = parent;
        }
        path
    }
}

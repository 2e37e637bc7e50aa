//! Which kernels are compiled, where not all are.
//!
//! A run takes milliseconds, the compilation of its kernel up to seconds. So texts are chosen, not
//! runs: few texts that show every fact about the kernels, and then every run whose text is among
//! them. The facts are
//!
//! - of a kernel, each tile, precision, operand and its type, value of a constant that follows from
//!   the row (a stride, a border), and a work-group beside its first;
//! - of an op, each epilogue and each of the table's work-groups;
//! - each row of the table.

use crate::cases::{Breadth, Case, GROUPS};
use diptych::Limits;
use diptych::emit::{KernelSpec, Least, Value};
use diptych::ops::Choice;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A row of the table with one of its kernels.
pub(crate) struct Run<'c> {
    pub(crate) case: &'c Case,
    pub(crate) choice: Choice,
    /// What decides the kernel's text.
    spec: KernelSpec,
}

/// Every run of `cases` that fits a device of these limits.
pub(crate) fn runs<'c>(cases: &'c [Case], limits: &Limits) -> Vec<Run<'c>> {
    let of = |case: &'c Case| {
        case.choices(limits).into_iter().filter_map(move |choice| {
            let mut spec = case.problem.plan(&choice, limits).ok()?.spec;
            // The sizes of operands are checked by the device; the text is the same.
            spec.interface.bindings.iter_mut().for_each(|binding| binding.least = Least::default());
            Some(Run { case, choice, spec })
        })
    };
    cases.iter().flat_map(of).collect()
}

impl Run<'_> {
    /// The kernel: op, variant, layout of its feature maps.
    fn kernel(&self) -> String {
        format!("{}_{} {}", self.spec.op, self.spec.variant, self.choice.layout)
    }

    /// The kernel with its tile.
    pub(crate) fn pair(&self) -> String {
        let [x, y, z] = self.choice.tile;
        format!("{} {x}x{y}x{z}", self.kernel())
    }

    /// What its text shows. `from_tiles` are the constants of each kernel that follow from the tile or
    /// the work-group.
    fn facts(&self, from_tiles: &BTreeSet<(String, &'static str)>) -> Vec<String> {
        let (spec, kernel) = (&self.spec, self.kernel());
        let of_kernel = |fact: String| format!("{kernel}: {fact}");
        let of_op = |fact: String| format!("{}: {fact}", spec.op);
        let mut facts = vec![
            self.case.name.clone(),
            self.pair(),
            of_kernel(spec.precision.to_string()),
            of_kernel(format!("between {:?}", spec.between)),
            of_op(spec.epilogue.label()),
        ];
        let bindings = spec.interface.bindings.iter();
        facts.extend(
            bindings.map(|binding| of_kernel(format!("{:?} {:?}", binding.operand, binding.element))),
        );
        let constants = spec.constants.iter();
        let constants = constants.filter(|(name, _)| !from_tiles.contains(&(kernel.clone(), *name)));
        facts.extend(constants.map(|(name, value)| of_kernel(format!("{name} {value:?}"))));
        if self.case.breadth == Breadth::Groups {
            if GROUPS.contains(&spec.work_group) {
                facts.push(of_op(format!("work-group {:?}", spec.work_group)));
            }
            if spec.work_group != GROUPS[0] {
                facts.push(of_kernel("another work-group".to_owned()));
            }
        }
        facts
    }
}

/// The names of each kernel's constants that differ between the runs of one row.
fn from_tiles(runs: &[Run<'_>]) -> BTreeSet<(String, &'static str)> {
    let mut values: HashMap<(usize, String, &'static str), HashSet<Value>> = HashMap::new();
    for run in runs {
        for &(name, value) in &run.spec.constants {
            values.entry((run.case.number, run.kernel(), name)).or_default().insert(value);
        }
    }
    let several = values.into_iter().filter(|(_, values)| values.len() > 1);
    several.map(|((_, kernel, name), _)| (kernel, name)).collect()
}

/// How many texts `runs` have.
pub(crate) fn texts(runs: &[Run<'_>]) -> usize {
    runs.iter().map(|run| &run.spec).collect::<HashSet<_>>().len()
}

/// How many pairs of a kernel and a tile each op has in `runs`.
pub(crate) fn pairs(runs: &[Run<'_>]) -> BTreeMap<&'static str, usize> {
    let mut pairs: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for run in runs {
        pairs.entry(run.case.problem.name()).or_default().insert(run.pair());
    }
    pairs.into_iter().map(|(op, pairs)| (op, pairs.len())).collect()
}

/// The runs of few texts that show every fact which `runs` show. The text that shows most is taken
/// first, the earlier of two that show as much.
pub(crate) fn chosen<'c>(runs: Vec<Run<'c>>) -> Vec<Run<'c>> {
    let from_tiles = from_tiles(&runs);
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut texts: HashMap<&KernelSpec, usize> = HashMap::new();
    let mut shown: Vec<BTreeSet<usize>> = Vec::new();
    for run in &runs {
        let next = texts.len();
        let text = *texts.entry(&run.spec).or_insert(next);
        shown.resize_with(texts.len(), BTreeSet::new);
        for fact in run.facts(&from_tiles) {
            let next = numbers.len();
            shown[text].insert(*numbers.entry(fact).or_insert(next));
        }
    }
    let mut taken = vec![false; shown.len()];
    loop {
        let most = shown.iter().enumerate().rev().max_by_key(|(_, facts)| facts.len());
        let Some((text, facts)) = most.map(|(text, facts)| (text, facts.clone())) else { break };
        if facts.is_empty() {
            break;
        }
        taken[text] = true;
        shown.iter_mut().for_each(|facts_of_text| facts_of_text.retain(|fact| !facts.contains(fact)));
    }
    let keep: Vec<bool> = runs.iter().map(|run| taken[texts[&run.spec]]).collect();
    runs.into_iter().zip(keep).filter_map(|(run, keep)| keep.then_some(run)).collect()
}

#[test]
fn few_texts_show_what_all_show() {
    let cases = crate::cases::full_table();
    let limits = crate::cases::widest_wgsl();
    let facts = |runs: &[Run<'_>], from_tiles: &BTreeSet<(String, &'static str)>| {
        runs.iter().flat_map(|run| run.facts(from_tiles)).collect::<BTreeSet<_>>()
    };
    let every = runs(&cases, &limits);
    let from_tiles = from_tiles(&every);
    let wanted = facts(&every, &from_tiles);
    let found = facts(&chosen(every), &from_tiles);
    assert!(wanted.len() > 1000, "{} facts", wanted.len());
    assert_eq!(wanted.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new());
    for fact in ["conv2d_tiled c4: STRIDE_W U32(2)", "pointwise: bias_prelu_add", "gemm_micro c4 1x4x1"] {
        assert!(found.contains(fact), "no {fact}");
    }
}

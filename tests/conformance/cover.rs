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
//!
//! One text is written in both languages. So its tile, its row and the constants that follow from it, which are the same
//! in both, are shown through one of the APIs in turn (`Turn`), where every device of both has the kernel.

use crate::cases::{Breadth, Case, GROUPS};
use diptych::Limits;
use diptych_emit::emit::{Dialect, KernelSpec, Least, Value};
use diptych_kernels::ops::Choice;
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

    /// What its text shows in both languages alike: its tile, its row, and the constants that do not follow from the
    /// tile or the work-group, as those in `from_tiles` do.
    fn facts_of_template(&self, from_tiles: &FromTiles) -> Vec<String> {
        let kernel = self.kernel();
        let constants = self.spec.constants.iter();
        let constants = constants.filter(|(name, _)| !from_tiles.contains(&(kernel.clone(), *name)));
        let constants = constants.map(|(name, value)| format!("{kernel}: {name} {value:?}"));
        constants.chain([self.pair(), self.case.name.clone()]).collect()
    }

    /// What its text shows in its language.
    fn facts_of_language(&self) -> Vec<String> {
        let (spec, kernel) = (&self.spec, self.kernel());
        let of_kernel = |fact: String| format!("{kernel}: {fact}");
        let of_op = |fact: String| format!("{}: {fact}", spec.op);
        let mut facts = vec![
            of_kernel(spec.precision.to_string()),
            of_kernel(format!("between {:?}", spec.between)),
            of_op(spec.epilogue.label()),
        ];
        let bindings = spec.interface.bindings.iter();
        facts.extend(
            bindings.map(|binding| of_kernel(format!("{:?} {:?}", binding.operand, binding.element))),
        );
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

/// Kernels, and the names of their constants that differ between the runs of one row.
type FromTiles = BTreeSet<(String, &'static str)>;

fn from_tiles(runs: &[Run<'_>]) -> FromTiles {
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

/// The pairs of a kernel and a tile that each op has in `runs`.
pub(crate) fn pairs(runs: &[Run<'_>]) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut pairs: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for run in runs {
        pairs.entry(run.case.problem.name()).or_default().insert(run.pair());
    }
    pairs
}

/// What the other API shows in this one's place.
pub(crate) struct Turn(BTreeSet<String>);

impl Turn {
    /// Of the facts of templates that devices of both limits show, those that are not for the first. One in six is shown
    /// in WGSL, the others in OpenCL C: PoCL compiles many texts as one program, in about half the time that Mesa's Vulkan
    /// driver takes for them one by one. What statements an op makes is written otherwise in each language, so
    /// both show all.
    pub(crate) fn between(cases: &[Case], own: &Limits, other: &Limits) -> Self {
        let facts = |limits: &Limits| {
            let runs = runs(cases, limits);
            let from_tiles = from_tiles(&runs);
            let rows = runs.iter().filter(|run| !["elementwise", "loops"].contains(&run.spec.op));
            rows.flat_map(|run| run.facts_of_template(&from_tiles)).collect::<BTreeSet<_>>()
        };
        let shared = facts(own).intersection(&facts(other)).cloned().collect::<Vec<_>>();
        let is_wgsl = own.dialect == Dialect::Wgsl;
        let places = shared.into_iter().enumerate();
        Turn(places.filter(|(place, _)| place.is_multiple_of(6) != is_wgsl).map(|(_, fact)| fact).collect())
    }

    /// Whether the other API shows it.
    pub(crate) fn has(&self, fact: &str) -> bool {
        self.0.contains(fact)
    }

    /// All is shown here.
    pub(crate) fn every() -> Self {
        Turn(BTreeSet::new())
    }
}

/// How long a text takes to compile, in some unit: by its tile, which most texts write out.
fn cost(run: &Run<'_>) -> u64 {
    let [x, y, _] = run.choice.tile;
    16 + u64::from(x.min(16) * y.min(16))
}

/// The runs of few texts that show every fact which `runs` show, but for those of the other API's `turn`. The text that
/// shows most for its cost is taken first, the earlier of two that show as much.
pub(crate) fn chosen<'c>(runs: Vec<Run<'c>>, turn: &Turn) -> Vec<Run<'c>> {
    let from_tiles = from_tiles(&runs);
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut texts: HashMap<&KernelSpec, usize> = HashMap::new();
    let mut shown: Vec<BTreeSet<usize>> = Vec::new();
    let mut costs: Vec<u64> = Vec::new();
    for run in &runs {
        let next = texts.len();
        let text = *texts.entry(&run.spec).or_insert(next);
        shown.resize_with(texts.len(), BTreeSet::new);
        costs.resize(texts.len(), cost(run));
        let facts = run.facts_of_template(&from_tiles).into_iter().chain(run.facts_of_language());
        for fact in facts.filter(|fact| !turn.0.contains(fact)) {
            let next = numbers.len();
            shown[text].insert(*numbers.entry(fact).or_insert(next));
        }
    }
    let mut texts_with = vec![Vec::new(); numbers.len()];
    for (text, facts) in shown.iter().enumerate() {
        facts.iter().for_each(|&fact| texts_with[fact].push(text));
    }
    // How many facts of each text no text that was taken shows.
    let mut left: Vec<u64> = shown.iter().map(|facts| facts.len() as u64).collect();
    let mut is_shown = vec![false; numbers.len()];
    let mut taken = Vec::new();
    // More facts for a cost: a / b > c / d where a * d > c * b.
    let for_its_cost = |a: &(usize, u64), b: &(usize, u64)| (a.1 * costs[b.0]).cmp(&(b.1 * costs[a.0]));
    while let Some((text, facts)) = left.iter().copied().enumerate().rev().max_by(for_its_cost)
        && facts > 0
    {
        taken.push(text);
        for &fact in shown[text].iter().filter(|fact| !std::mem::replace(&mut is_shown[**fact], true)) {
            texts_with[fact].iter().for_each(|&other| left[other] -= 1);
        }
    }
    // What those taken later show as well needs no text of its own.
    let mut times: HashMap<usize, usize> = HashMap::new();
    taken.iter().flat_map(|&text| &shown[text]).for_each(|&fact| *times.entry(fact).or_default() += 1);
    taken.retain(|&text| {
        let needed = shown[text].iter().any(|fact| times[fact] == 1);
        if !needed {
            shown[text].iter().for_each(|fact| *times.entry(*fact).or_default() -= 1);
        }
        needed
    });
    let taken: HashSet<usize> = taken.into_iter().collect();
    let keep: Vec<bool> = runs.iter().map(|run| taken.contains(&texts[&run.spec])).collect();
    runs.into_iter().zip(keep).filter_map(|(run, keep)| keep.then_some(run)).collect()
}

/// The facts of these runs, those of one API's and of the other's.
fn facts(runs: &[Run<'_>], from_tiles: &FromTiles) -> BTreeSet<String> {
    let of = |run: &Run<'_>| run.facts_of_template(from_tiles).into_iter().chain(run.facts_of_language());
    runs.iter().flat_map(of).collect()
}

#[test]
fn few_texts_show_what_all_show() {
    let cases = crate::cases::full_table();
    let apis = [crate::cases::widest_wgsl(), crate::cases::widest()];
    let turns = [Turn::between(&cases, &apis[0], &apis[1]), Turn::between(&cases, &apis[1], &apis[0])];
    assert!(turns[0].0.is_disjoint(&turns[1].0), "a fact that neither API shows");
    let shown = [0, 1].map(|at| {
        let every = runs(&cases, &apis[at]);
        let from_tiles = from_tiles(&every);
        let wanted = facts(&every, &from_tiles);
        assert!(wanted.len() > 1000, "{} facts", wanted.len());
        let found = facts(&chosen(every, &turns[at]), &from_tiles);
        let missed: Vec<_> = wanted.difference(&found).filter(|fact| !turns[at].0.contains(*fact)).collect();
        assert_eq!(missed, Vec::<&String>::new());
        assert!(turns[at].0.is_subset(&wanted), "a turn of what is not shown at all");
        found
    });
    for turn in &turns {
        assert!(turn.0.len() > 100, "{} facts", turn.0.len());
        assert!(turn.0.iter().all(|fact| shown.iter().any(|found| found.contains(fact))));
    }
    for fact in ["conv2d_tiled c4: f16s", "pointwise: bias_prelu_add", "gemm_micro c4: f32"] {
        assert!(shown.iter().all(|found| found.contains(fact)), "no {fact}");
    }
    for fact in ["conv2d_tiled c4 2x8x1", "gemm_micro c4 1x4x1", "conv2d_tiled c4: STRIDE_W U32(2)"] {
        assert!(shown.iter().any(|found| found.contains(fact)), "no {fact}");
    }
    // All of it where no other API takes a turn.
    let every = runs(&cases, &apis[0]);
    let from_tiles = from_tiles(&every);
    let wanted = facts(&every, &from_tiles);
    assert_eq!(facts(&chosen(every, &Turn::every()), &from_tiles), wanted);
}

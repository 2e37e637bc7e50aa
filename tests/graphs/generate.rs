//! Random graphs: nodes are drawn one after the other, and kept if the library takes them and their results are
//! numbers of usual size that rounding leaves known.

use crate::draw;
use crate::motifs;
use crate::oracle::{self, Arithmetic, Known};
use crate::random::{Kind, Random};
use crate::recipe::{Built, Make, Origin, Recipe, Source, Step, Tensor};
use crate::run::{self, Setting};
use diptych::{Backend, Graph, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The most elements of a tensor.
pub(crate) const MOST_ELEMENTS: usize = 4096;

/// The most elements of a tensor of a node that is to be large.
const MANY_ELEMENTS: usize = 1 << 16;

/// The largest magnitude of a result.
const LARGEST: f32 = 2000.0;

/// A graph that is being made. Values are in the order in which they were added, sources among them.
pub(crate) struct Draft {
    pub(crate) random: Random,
    items: Vec<Item>,
    built: Built,
    known: BTreeMap<Value, Known>,
}

#[derive(Debug, Clone)]
enum Item {
    Source(Source),
    Step(Box<Step>),
}

impl Draft {
    pub(crate) fn new(seed: u64) -> Self {
        let built = Built { graph: Graph::new(), values: Vec::new(), inputs: Vec::new() };
        Draft { random: Random::new(seed), items: Vec::new(), built, known: BTreeMap::new() }
    }

    pub(crate) fn count(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn dims(&self, value: usize) -> Vec<usize> {
        let dims = self.built.values.get(value).and_then(|&value| self.built.graph.dims(value).ok());
        dims.map(|dims| dims.extents().to_vec()).unwrap_or_default()
    }

    fn largest(&self, value: usize) -> f32 {
        let known = self.built.values.get(value).and_then(|value| self.known.get(value));
        known.map_or(0.0, |known| known.value.iter().fold(0.0, |most: f32, value| most.max(value.abs())))
    }

    /// Whether rounding leaves its elements as they are.
    pub(crate) fn is_exact(&self, value: usize) -> bool {
        self.built.values.get(value).and_then(|value| self.known.get(value)).is_some_and(Known::is_exact)
    }

    /// Adds a value that no node writes.
    pub(crate) fn source(&mut self, dims: &[usize], kind: Kind) -> usize {
        let origin = match self.random.below(8) {
            0 if !self.items.is_empty() => Origin::Constant,
            1 => Origin::State(None),
            _ => Origin::Input,
        };
        let values = self.random.values(kind, dims.iter().product());
        self.given(dims, values, origin)
    }

    /// Adds a value of these elements.
    pub(crate) fn given(&mut self, dims: &[usize], values: Vec<f32>, origin: Origin) -> usize {
        self.tensor(Tensor { dims: dims.to_vec(), values, halves: false }, origin)
    }

    /// Adds a tensor as a value.
    pub(crate) fn tensor(&mut self, tensor: Tensor, origin: Origin) -> usize {
        let source = Source { origin, tensor };
        if let Ok(value) = self.built.source(&source) {
            self.known.insert(value, Known::exact(source.tensor.values.clone()));
            self.items.push(Item::Source(source));
        }
        self.items.len() - 1
    }

    /// A value, more often a late one.
    pub(crate) fn any(&mut self) -> usize {
        let count = self.count();
        let back = self.random.below(count).min(self.random.below(count));
        count - 1 - back
    }

    /// A value that fits, or none.
    pub(crate) fn fitting(&mut self, fits: impl Fn(&Draft, usize) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.count()).filter(|&value| fits(self, value)).collect();
        if all.is_empty() { None } else { Some(self.random.pick(&all)) }
    }

    /// Adds a node and says which value it is, unless the library refuses it or its results are of no use.
    pub(crate) fn add(&mut self, step: Step) -> Option<usize> {
        let large =
            step.arguments.iter().any(|&value| self.dims(value).iter().product::<usize>() > MOST_ELEMENTS);
        let most = if large { MANY_ELEMENTS } else { MOST_ELEMENTS };
        self.step(step, most).then(|| self.count() - 1)
    }

    fn step(&mut self, mut step: Step, most: usize) -> bool {
        step.number = self.count();
        // What was suppressed is far below all else, and overflows in most of what may follow.
        let chosen =
            matches!(step.make, Make::Slice(..) | Make::StridedSlice(_) | Make::Split(..) | Make::Reshape(_));
        if !chosen && step.arguments.iter().any(|&value| self.largest(value) > LARGEST) {
            return false;
        }
        let mut built = self.built.clone();
        let before = built.graph.nodes().len();
        let Ok(value) = built.step(&step) else { return false };
        let mut known = self.known.clone();
        for node in &built.graph.nodes()[before..] {
            let (Ok(found), [output]) =
                (oracle::node(&built.graph, node, &known, Arithmetic::F32), node.outputs())
            else {
                return false;
            };
            known.insert(*output, found);
        }
        let Some(found) = known.get(&value) else { return false };
        let largest = found.value.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
        let suppressed = chosen || matches!(step.make, Make::Suppress(_));
        let usual = found.value.iter().all(|value| value.is_finite()) && (largest <= LARGEST || suppressed);
        let vague = found.error.iter().filter(|&&error| error > 1e-3 * f64::from(largest.max(1e-3))).count();
        let clear = 20 * vague <= found.error.len() || self.random.one_in(40);
        if !usual || !clear || found.value.is_empty() || found.value.len() > most {
            return false;
        }
        (self.built, self.known) = (built, known);
        self.items.push(Item::Step(Box::new(step)));
        true
    }

    /// The recipe, sources first.
    pub(crate) fn recipe(mut self) -> Recipe {
        let sources = self.items.iter().filter(|item| matches!(item, Item::Source(_))).count();
        let (mut source, mut step) = (0, sources);
        let place: Vec<usize> = self
            .items
            .iter()
            .map(|item| {
                let next = if matches!(item, Item::Source(_)) { &mut source } else { &mut step };
                *next += 1;
                *next - 1
            })
            .collect();
        let dims: Vec<Vec<usize>> = (0..self.count()).map(|value| self.dims(value)).collect();
        let mut read = BTreeSet::new();
        let mut recipe = Recipe::default();
        for item in &self.items {
            match item {
                Item::Source(source) => {
                    let mut source = source.clone();
                    if matches!(source.origin, Origin::State(_)) {
                        source.origin = Origin::State(None);
                    }
                    recipe.sources.push(source);
                }
                Item::Step(step) => {
                    let mut step = Step::clone(step);
                    read.extend(step.arguments.iter().copied());
                    step.arguments.iter_mut().for_each(|argument| *argument = place[*argument]);
                    recipe.steps.push(step);
                }
            }
        }
        for (index, item) in self.items.iter().enumerate() {
            let is_node = matches!(item, Item::Step(_));
            let one_in = if is_node { 6 } else { 25 };
            if is_node && !read.contains(&index) || self.random.one_in(one_in) {
                recipe.outputs.push(place[index]);
            }
        }
        let turned = self.random.permutation(recipe.outputs.len());
        recipe.outputs = turned.into_iter().map(|at| recipe.outputs[at]).collect();
        for index in 0..recipe.sources.len() {
            if matches!(recipe.sources[index].origin, Origin::State(_)) {
                let own = &recipe.sources[index].tensor.dims;
                let alike = (0..place.len()).filter(|&value| dims[value] == *own).map(|value| place[value]);
                let next = self.random.pick(&alike.collect::<Vec<_>>());
                let updated = with_update(&recipe, index, next);
                recipe = if stays_usual(&updated) { updated } else { recipe };
            }
        }
        recipe
    }
}

fn with_update(recipe: &Recipe, state: usize, next: usize) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.sources[state].origin = Origin::State(Some(next));
    recipe
}

/// Whether what the runs leave to each other stays of usual size, and known.
fn stays_usual(recipe: &Recipe) -> bool {
    let Ok(built) = recipe.build() else { return false };
    let setting = Setting { runs: 3, ..Setting::plain(Backend::Cpu) };
    let Ok(runs) = run::wanted(recipe, &built, &setting, Arithmetic::F32) else { return false };
    runs.iter().flatten().all(|known| {
        let largest = known.value.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
        let clear = known.error.iter().all(|&error| error <= 1e-2 * f64::from(largest.max(1e-3)));
        known.value.iter().all(|value| value.is_finite()) && largest <= LARGEST && clear
    })
}

/// A graph of one to eight nodes.
pub(crate) fn recipe(seed: u64) -> Recipe {
    let mut draft = Draft::new(seed);
    draw::first(&mut draft);
    let wanted = draft.random.pick(&[1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 8, 12]);
    let (mut made, mut tries) = (0, 0);
    while made < wanted && tries < 80 {
        tries += 1;
        let before = draft.count();
        if draft.random.one_in(4) {
            motifs::add(&mut draft);
        } else if let Some(step) = draw::step(&mut draft) {
            draft.add(step);
        }
        made += usize::from(draft.count() > before);
    }
    let mut random = draft.random.clone();
    let mut recipe = draft.recipe();
    if random.one_in(SPECIAL) {
        make_special(&mut recipe, &mut random);
    }
    recipe
}

/// One graph of so many is given elements that are not finite. What does not depend on them must be as it was.
const SPECIAL: usize = 10;

fn make_special(recipe: &mut Recipe, random: &mut Random) {
    for source in recipe.sources.iter_mut().filter(|source| source.origin == Origin::Input) {
        let values = &mut source.tensor.values;
        for _ in 0..random.below(3).min(values.len() - 1) {
            let at = random.below(values.len());
            values[at] = random.pick(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        }
    }
}

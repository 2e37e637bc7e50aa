//! A file as a network whose extents each run decides.
//!
//! The network is one part: it is read again for the extents, and for the values of inputs that an operator wants to know.

use super::LoadOptions;
use super::import::Import;
use super::load::{Failed, describe};
use super::tensors::Extent;
use crate::compute::Prepare;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::model::ModelInfo;
use crate::model::build::Wanted;
use crate::model::constant_cache::ConstantCache;
use crate::model::input_dependence;
use crate::model::reason::Reason;
use crate::source::{
    Caching, Filling, GivenInput, GraphSource, OpenAxis, OpenInput, Part, PartResult, PartStart, Port,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A file whose network is made for the extents of each run.
#[derive(Debug)]
pub struct TfliteSource {
    file: String,
    bytes: Arc<[u8]>,
    options: LoadOptions,
    inputs: Vec<OpenInput>,
    outputs: Vec<Port>,
    kept: Arc<ConstantCache>,
    prepare: Prepare,
}

impl TfliteSource {
    /// Of the bytes of a file.
    ///
    /// # Errors
    /// If it is not a valid file, or needs what is not supported.
    pub fn new(
        file: &str,
        bytes: Arc<[u8]>,
        options: &LoadOptions,
        prepare: Prepare,
    ) -> Result<(Self, ModelInfo)> {
        let model = super::model(file, &bytes)?;
        let (inputs, outputs, info) = describe(file, &model, &bytes, options, prepare)?;
        let (file, options) = (file.to_owned(), options.clone());
        Ok((
            TfliteSource {
                file,
                bytes: Arc::clone(&bytes),
                options,
                inputs,
                outputs,
                kept: Arc::default(),
                prepare,
            },
            info,
        ))
    }
}

impl Import<'_> {
    /// Inputs and outputs as the file declares them.
    pub(super) fn ends_of(
        &mut self,
        inputs: &[i32],
        (outputs, chosen): (&[i32], &[usize]),
        options: &LoadOptions,
    ) -> Result<(Vec<OpenInput>, Vec<Port>), Reason> {
        let mut found = Vec::with_capacity(inputs.len());
        for (place, &input) in inputs.iter().enumerate() {
            let position = self.tensors.position(input)?;
            let (name, dtype) = (self.unique_name(position)?, self.kind_at(position)?.dtype());
            if options.values.contains_key(&name) {
                continue;
            }
            let (mut extents, mut open) = (Vec::new(), Vec::new());
            for (axis, extent) in self.tensors.declared(position)?.into_iter().enumerate() {
                let own = format!("{name}.{axis}");
                let batch = (axis == 0).then(|| options.dimensions.get("batch").copied()).flatten();
                let fixed = match extent {
                    Extent::Fixed(extent) => Some(extent),
                    Extent::Free(_) => options.dimensions.get(&own).copied().or(batch),
                };
                extents.push(fixed);
                if fixed.is_none() {
                    open.push(OpenAxis { axis, name: own });
                }
            }
            found.push(OpenInput { place, name, dtype, extents: Some(extents), open, is_optional: false });
        }
        let mut ports = Vec::with_capacity(chosen.len());
        for (&place, &output) in chosen.iter().filter_map(|place| Some((place, outputs.get(*place)?))) {
            let position = self.tensors.position(output)?;
            let name = self.ends.get(place).map_or_else(String::new, |end| end.name.clone());
            let dtype = self.kind_at(position)?.dtype();
            let declared = self.tensors.declared(position)?;
            let mut open = Vec::new();
            let extents: Vec<usize> = declared
                .iter()
                .enumerate()
                .map(|(axis, extent)| match *extent {
                    Extent::Fixed(extent) => extent,
                    Extent::Free(extent) => {
                        open.push(OpenAxis { axis, name: format!("{name}.{axis}") });
                        extent.max(1)
                    }
                })
                .collect();
            let dims = crate::dims::Dims::new(&extents)?;
            ports.push(Port { name, shape: dims.shape(), dims, dtype, open });
        }
        Ok((found, ports))
    }

    /// The inputs that were to be known where an operator was refused.
    pub(super) fn wanted_inputs(&self) -> BTreeSet<String> {
        match self.build.wanted.get() {
            Wanted::Value(value) => input_dependence::inputs(&self.build.graph, &[value]),
            Wanted::Nothing | Wanted::Host => BTreeSet::new(),
        }
    }
}

impl GraphSource for TfliteSource {
    fn inputs(&self) -> &[OpenInput] {
        &self.inputs
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn filling(&self, _: &[&str]) -> Result<Filling> {
        let why =
            "a TensorFlow Lite file says with its variables what is kept between runs: they need no caches";
        Err(Error::unsupported("a cache between runs", why))
    }

    fn part(
        &self,
        _: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        _: Option<Caching<'_>>,
    ) -> Result<Part> {
        let model = super::model(&self.file, &self.bytes)?;
        let mut by_value = by_value.clone();
        by_value.retain(|name| given.iter().any(|own| own.name == *name && own.input.is_some()));
        loop {
            let mut options = self.options.clone();
            for own in given {
                if by_value.contains(&*own.name) {
                    let value = own.value()?.map(std::borrow::Cow::into_owned);
                    options.values.extend(value.map(|value| (own.name.clone().into_owned(), value)));
                    continue;
                }
                let input = self.inputs.iter().find(|input| input.name == own.name);
                for axis in input.iter().flat_map(|input| &input.open) {
                    let extent = own.dims.extents().get(axis.axis).copied();
                    options.dimensions.extend(extent.map(|extent| (axis.name.clone(), extent)));
                }
            }
            let (error, wanted) = match super::load::load_or_want(
                &self.file,
                &model,
                &self.bytes,
                (&options, Some(&self.kept)),
                self.prepare,
            ) {
                Ok(loaded) => {
                    let graph = loaded.graph;
                    let named = |(index, name): (usize, String)| (name, PartResult::Output(index));
                    let names = graph.outputs().iter().map(|&output| graph.name(output).map(str::to_owned));
                    let names = names.collect::<Result<Vec<String>>>()?;
                    let results = names.into_iter().enumerate().map(named).collect();
                    return Ok(Part { graph, by_value, results, next: None, adds: 0, apart: false });
                }
                Err(Failed { error, wanted }) => (error, wanted),
            };
            let own = |name: &String| given.iter().find(|own| own.name == *name);
            let few = |name: &String| {
                own(name).is_some_and(|own| own.dims.elements() <= input_dependence::MOST_BY_VALUE)
            };
            if wanted.is_empty() || !wanted.iter().all(|name| few(name) && !by_value.contains(name)) {
                return Err(error);
            }
            if !wanted.iter().all(|name| own(name).is_some_and(|own| own.input.is_some())) {
                return Ok(Part {
                    graph: Graph::new(),
                    by_value: wanted,
                    results: Vec::new(),
                    next: None,
                    adds: 0,
                    apart: false,
                });
            }
            by_value.extend(wanted);
        }
    }
}

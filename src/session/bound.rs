//! Runs whose inputs and outputs lie in an application's buffers: bound where they may be, moved by a kernel where
//! their elements lie otherwise, and copied only where no kernel may be given them.

use super::picture::{PictureInput, ShownPictures};
use super::resources::{Resources, compile};
use crate::device::adopt::{Adopted, Transfer};
use crate::device::{Buffer, Device, Dispatch, Memory, Recording, Resource, Slice};
use crate::emit::Access;
use crate::error::{Error, Result};
use crate::lower::{Arrangement, Lent, PortIndex, Spot, WiredStep, Wiring};
use crate::ops::Launch;
use crate::source::Port;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sets of buffers whose recordings are kept: swap chains and rings of frames have two to four, and two outputs of
/// two inputs each have four.
const MAX_SETS: usize = 8;

/// A part of an application's buffer, for a port.
#[derive(Debug, Clone)]
pub(super) struct PortBuffer {
    /// The port's.
    pub(super) name: String,
    pub(super) end: PortIndex,
    pub(super) adopted: Adopted,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) arrangement: Arrangement,
}

impl PortBuffer {
    fn is(&self, other: &PortBuffer) -> bool {
        (self.end, self.offset, self.bytes) == (other.end, other.offset, other.bytes)
            && self.arrangement == other.arrangement
            && self.adopted.shares(&other.adopted)
    }

    fn overlaps(&self, other: &PortBuffer) -> bool {
        let end = |port: &PortBuffer| port.offset.saturating_add(port.bytes);
        self.adopted.shares(&other.adopted) && self.offset < end(other) && other.offset < end(self)
    }

    /// Whether kernels may be given it as it is.
    fn bindable(&self, alignment: u64) -> bool {
        let kernels = match self.end {
            PortIndex::Input(_) => self.adopted.kernels[0],
            PortIndex::Output(_) => self.adopted.kernels[1],
        };
        kernels && self.offset.is_multiple_of(alignment.max(4))
    }

    fn copyable(&self) -> bool {
        let allowed = match self.end {
            PortIndex::Input(_) => self.adopted.copies[0],
            PortIndex::Output(_) => self.adopted.copies[1],
        };
        allowed && self.offset.is_multiple_of(4)
    }

    /// Checks that it holds the port, and may be bound or copied.
    pub(super) fn check(&self, port: &Port, alignment: u64) -> Result<()> {
        let what = format!("buffer of {:?}", port.name);
        let wanted = self.arrangement.bytes(&port.shape);
        let Arrangement { layout, dtype } = self.arrangement;
        if self.bytes < wanted {
            let found = format!("{} bytes from offset {}", self.bytes, self.offset);
            return Err(Error::input(
                what,
                found,
                format!("at least {wanted} bytes ({dtype} {layout} {})", port.shape),
            ));
        }
        if self.bindable(alignment) || self.copyable() {
            return Ok(());
        }
        let found = format!("offset {}, {}", self.offset, self.adopted.said);
        let how = match self.end {
            PortIndex::Input(_) => "COPY_SRC",
            PortIndex::Output(_) => "COPY_DST",
        };
        let bound = format!("STORAGE and an offset that is a multiple of {alignment}");
        Err(Error::input(what, found, format!("{bound}, or {how} and a multiple of 4, to be copied")))
    }
}

/// A run with an application's buffers, ready to be encoded.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) before: Vec<Transfer>,
    /// Nothing, where nothing is to be computed.
    pub(super) recording: Option<Recording>,
    pub(super) after: Vec<Transfer>,
}

/// What recordings with other buffers are made of, and those that were made.
#[derive(Debug)]
pub(super) struct Bindings {
    pub(super) wiring: Wiring,
    dispatches: Vec<Dispatch>,
    resources: Resources,
    /// The inputs that are pictures.
    pictures: BTreeMap<usize, PictureInput>,
    /// The latest last.
    kept: Vec<(Vec<PortBuffer>, Arc<Bound>)>,
}

/// A run with an application's buffers, before it is recorded.
#[derive(Default)]
struct Run {
    before: Vec<Transfer>,
    dispatches: Vec<Dispatch>,
    after: Vec<Transfer>,
    /// Ports whose memory a dispatch is given several times and writes.
    clash: BTreeSet<PortIndex>,
}

/// A recording in the making.
struct Making<'a> {
    bindings: &'a Bindings,
    device: &'a dyn Device,
    ports: &'a [PortBuffer],
    /// What kernels are given in place of buffers that they may not be.
    staged: BTreeMap<PortIndex, Buffer>,
    scratch: BTreeMap<usize, Buffer>,
}

impl Bindings {
    pub(super) fn new(wiring: Wiring, dispatches: Vec<Dispatch>, resources: Resources) -> Self {
        Bindings { wiring, dispatches, resources, pictures: BTreeMap::new(), kept: Vec::new() }
    }

    /// Lets go of the application's buffers.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.pictures.values_mut().for_each(PictureInput::clear);
    }

    /// The buffer of an input that is pictures, and the recording that fills it.
    pub(super) async fn pictures(
        &mut self,
        device: &dyn Device,
        index: usize,
        port: &Port,
        shown: ShownPictures,
    ) -> Result<(PortBuffer, Arc<Recording>)> {
        let pictures = match self.pictures.entry(index) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                place.insert(PictureInput::new(device, port, self.wiring.preferred(index))?)
            }
        };
        let recording = pictures.recording(device, port, shown).await?;
        let (buffer, arrangement) = (pictures.target.buffer.clone(), pictures.arrangement);
        let bytes = buffer.bytes();
        let adopted = Adopted::own(buffer);
        let name = port.name.clone();
        Ok((
            PortBuffer { name, end: PortIndex::Input(index), adopted, offset: 0, bytes, arrangement },
            recording,
        ))
    }

    /// The run with these buffers: every input has one.
    pub(super) async fn bound(&mut self, device: &dyn Device, ports: Vec<PortBuffer>) -> Result<Arc<Bound>> {
        let same = |kept: &[PortBuffer]| {
            kept.len() == ports.len() && kept.iter().zip(&ports).all(|(one, other)| one.is(other))
        };
        if let Some(place) = self.kept.iter().position(|(kept, _)| same(kept)) {
            let known = self.kept.remove(place);
            let bound = Arc::clone(&known.1);
            self.kept.push(known);
            return Ok(bound);
        }
        let bound = Arc::new(self.make(device, &ports).await?);
        if self.kept.len() >= MAX_SETS {
            self.kept.remove(0);
        }
        self.kept.push((ports, Arc::clone(&bound)));
        Ok(bound)
    }

    async fn make(&self, device: &dyn Device, ports: &[PortBuffer]) -> Result<Bound> {
        let alignment = device.info().limits.binding_alignment;
        let is_bindable = |port: &&PortBuffer| port.bindable(alignment);
        let mut bindable = crate::sorted::set(ports.iter().filter(is_bindable).map(|port| port.end));
        for (index, port) in ports.iter().enumerate() {
            for other in ports.iter().take(index).filter(|other| other.overlaps(port)) {
                if let (PortIndex::Output(_), PortIndex::Output(_)) = (port.end, other.end) {
                    let found = format!("those of {:?} and {:?} overlap", other.name, port.name);
                    return Err(Error::input("buffers of outputs", found, "a range of its own for each"));
                }
                // An input is read wholly before an output is written over it.
                if matches!(port.end, PortIndex::Output(_)) != matches!(other.end, PortIndex::Output(_)) {
                    bindable.remove(&port.end);
                    bindable.remove(&other.end);
                }
            }
        }
        loop {
            let mut making =
                Making { bindings: self, device, ports, staged: BTreeMap::new(), scratch: BTreeMap::new() };
            let run = making.make(&bindable).await?;
            // A dispatch that writes a buffer may not be given it twice.
            let before = bindable.len();
            bindable.retain(|end| !run.clash.contains(end));
            if bindable.len() == before {
                let Run { before, dispatches, after, .. } = run;
                let recording = if dispatches.is_empty() { None } else { Some(device.record(&dispatches)?) };
                return Ok(Bound { before, recording, after });
            }
        }
    }
}

impl<'a> Making<'a> {
    fn port(&self, end: PortIndex) -> Result<&'a PortBuffer> {
        let port = self.ports.iter().find(|port| port.end == end);
        port.ok_or_else(|| Error::Internal(format!("no buffer for {end:?}")))
    }

    /// The application's own bytes.
    fn lent(&self, end: PortIndex, offset: u64, bytes: u64) -> Result<Slice> {
        let port = self.port(end)?;
        port.adopted.buffer.slice(port.offset + offset, bytes)
    }

    /// The run, in which kernels are given the buffers of `bindable`.
    async fn make(&mut self, bindable: &BTreeSet<PortIndex>) -> Result<Run> {
        let wiring = &self.bindings.wiring;
        let lent = |port: &PortBuffer| {
            let arrangement = port.arrangement;
            let as_is = bindable.contains(&port.end);
            // Others than rows of f32 are copied to memory that kernels are given.
            let bytes = if as_is { port.bytes } else { 0 };
            Lent { arrangement, bytes, bindable: as_is || !arrangement.is_rows() }
        };
        // Every input is there, in its place.
        let is_input = |port: &&PortBuffer| matches!(port.end, PortIndex::Input(_));
        let inputs: Vec<Lent> = self.ports.iter().filter(is_input).map(lent).collect();
        let output = |index| self.ports.iter().find(|port| port.end == PortIndex::Output(index));
        let outputs: Vec<Option<Lent>> =
            (0..wiring.output_count()).map(|index| output(index).map(lent)).collect();
        let wired = wiring.wire(&inputs, &outputs)?;
        let mut run = Run::default();
        for port in self.ports.iter().filter(|port| !bindable.contains(&port.end)) {
            if !port.copyable() {
                let found = format!("memory that it shares with another port, and {}", port.adopted.said);
                let wanted = "memory of its own, or a buffer that allows copies";
                return Err(Error::input(format!("buffer of {:?}", port.name), found, wanted));
            }
            if !port.arrangement.is_rows() {
                let bytes = port.arrangement.bytes(&wiring.shape(port.end)?);
                if bytes == 0 {
                    continue;
                }
                let own = self.device.alloc(bytes, Memory::Device)?;
                let (lent, kernels) = (self.lent(port.end, 0, bytes)?, own.slice(0, bytes)?);
                self.staged.insert(port.end, own);
                match port.end {
                    PortIndex::Input(_) => run.before.push(Transfer { from: lent, to: kernels }),
                    PortIndex::Output(_) => run.after.push(Transfer { from: kernels, to: lent }),
                }
            }
        }
        for step in &wired.steps {
            let (dispatch, ends) = self.dispatch(step).await?;
            run.clash.extend(self.clash(&dispatch, &ends, bindable)?);
            run.dispatches.push(dispatch);
        }
        for (end, spot) in &wired.copied {
            let own = self.slice(spot)?;
            let lent = self.lent(*end, 0, own.bytes())?;
            match end {
                PortIndex::Input(_) => run.before.push(Transfer { from: lent, to: own }),
                PortIndex::Output(_) => run.after.push(Transfer { from: own, to: lent }),
            }
        }
        Ok(run)
    }

    /// What lies at a spot.
    fn slice(&mut self, spot: &Spot) -> Result<Slice> {
        match *spot {
            Spot::Stored(part) => self.bindings.resources.slice(&part),
            Spot::Lent { end, offset, bytes } => match self.staged.get(&end) {
                Some(own) => own.slice(offset, bytes),
                None => self.lent(end, offset, bytes),
            },
            Spot::Scratch { output, bytes } => {
                if !self.scratch.contains_key(&output) {
                    self.scratch.insert(output, self.device.alloc(bytes, Memory::Device)?);
                }
                let own = self.scratch.get(&output);
                own.ok_or_else(|| Error::Internal("no scratch memory".to_owned()))?.slice(0, bytes)
            }
        }
    }

    /// What a kernel that moves elements is given: all of a buffer of the session's, whose last vector may end
    /// beyond the value.
    fn whole(&mut self, spot: &Spot) -> Result<Slice> {
        let slice = self.slice(spot)?;
        let own = !matches!(spot, Spot::Lent { .. }) && slice.offset == 0;
        Ok(if own { slice.buffer.whole() } else { slice })
    }

    /// The dispatch of a step, and for each of its resources the port whose buffer it is.
    async fn dispatch(&mut self, step: &WiredStep) -> Result<(Dispatch, Vec<(usize, PortIndex)>)> {
        let end = |(place, spot): (usize, &Spot)| match spot {
            Spot::Lent { end, .. } => Some((place, *end)),
            _ => None,
        };
        match step {
            WiredStep::Own { step, replaced } => {
                let missing = || Error::Internal(format!("no dispatch {step}"));
                let mut dispatch = self.bindings.dispatches.get(*step).ok_or_else(missing)?.clone();
                for (place, spot) in replaced {
                    let slice = self.slice(spot)?;
                    *dispatch.resources.get_mut(*place).ok_or_else(missing)? = Resource::Buffer(slice);
                }
                let ends = replaced.iter().filter_map(|(place, spot)| end((*place, spot))).collect();
                Ok((dispatch, ends))
            }
            WiredStep::Move { launch, from, to } => {
                let ends = [from, to].into_iter().enumerate().filter_map(end).collect();
                let resources = [self.whole(from)?, self.whole(to)?];
                Ok((self.planned(launch, resources).await?, ends))
            }
        }
    }

    async fn planned(&self, launch: &Launch, resources: [Slice; 2]) -> Result<Dispatch> {
        let source = launch.spec.render_written(self.device.info().limits.dialect)?;
        Ok(Dispatch {
            pipeline: compile(self.device, launch, &source).await?,
            resources: resources.map(Resource::Buffer).into(),
            params: launch.params.clone(),
            groups: launch.groups(),
        })
    }

    /// The ports whose memory `dispatch` is given several times and writes.
    fn clash(
        &self,
        dispatch: &Dispatch,
        ends: &[(usize, PortIndex)],
        bindable: &BTreeSet<PortIndex>,
    ) -> Result<Vec<PortIndex>> {
        let bindings = &dispatch.pipeline.interface.bindings;
        let writes = |place: usize| bindings.get(place).is_some_and(|binding| binding.access != Access::Read);
        let own: Vec<&(usize, PortIndex)> = ends.iter().filter(|(_, end)| bindable.contains(end)).collect();
        let mut found = Vec::new();
        for (index, (place, end)) in own.iter().enumerate() {
            for (other_place, other) in own.iter().take(index) {
                let shares = self.port(*end)?.adopted.shares(&self.port(*other)?.adopted);
                if shares && (writes(*place) || writes(*other_place)) && end != other {
                    found.extend([*end, *other]);
                }
            }
        }
        Ok(found)
    }
}

//! The operands of a problem as the candidates' kernels take them.

use super::OpBench;
use crate::alloc;
use crate::device::{Memory, Resource, Wait};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand};
use crate::error::{Error, Result};
use crate::ops::{Choice, OperandInfo, Role};
use crate::task::Turns;
use half::f16;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What an operand's resources are found by. A constant's layout depends on the candidate's kernel
/// and tile; its content says which it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) operand: Operand,
    pub(super) access: Access,
    element: Element,
    pub(super) dtype: DType,
    image: bool,
    content: u64,
}

pub(super) fn encode(values: &[f32], dtype: DType) -> Vec<u8> {
    let mut bytes = match dtype {
        DType::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect(),
        _ => bytemuck::cast_slice(values).to_vec(),
    };
    // Whole vec4s, so that a kernel may bind the range as such.
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

pub(super) fn decode(bytes: &[u8], dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F16 => bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect(),
        _ => bytemuck::pod_collect_to_vec(bytes),
    }
}

impl OpBench {
    /// The stored values of `binding` before a run, of an image those that C4 has. The destination is
    /// full of NaN, so that an element that is not written is seen.
    pub(super) fn stored(&self, choice: &Choice, binding: &Binding) -> Result<Vec<f32>> {
        let operand = binding.operand;
        let given = || {
            let values = self.operands.get(&operand);
            values.ok_or_else(|| Error::Internal(format!("no {} to tune with", operand.name())))
        };
        let kernel = self.op.kernel(choice.variant)?;
        let Some(form) = kernel.form(operand, choice) else {
            return kernel.pack(choice, operand, given()?);
        };
        let info = self.info(operand)?;
        match binding.access {
            Access::Write => Ok(vec![f32::NAN; info.stored_elements(form)]),
            Access::Read | Access::ReadWrite => info.stored(form, given()?, 0.0),
        }
    }

    /// The operand's extents.
    pub(super) fn info(&self, operand: Operand) -> Result<OperandInfo> {
        let infos = self.op.operands();
        let info = infos.into_iter().find(|info| info.operand == operand);
        info.ok_or_else(|| Error::Internal(format!("{} has no {}", self.op.name(), operand.name())))
    }

    /// The resources of `binding`, one per set.
    pub(super) async fn resources(&mut self, wait: Wait, choice: &Choice, binding: &Binding) -> Result<Key> {
        if let Some(bytes) = binding.scratch_bytes() {
            return self.scratch(binding, bytes);
        }
        let constant = self.info(binding.operand)?.role == Role::Constant;
        let mut key = Key {
            operand: binding.operand,
            access: binding.access,
            element: binding.element,
            dtype: binding.element.dtype(),
            image: matches!(binding.element, Element::Image2d(_)),
            content: 0,
        };
        if !constant && self.resources.contains_key(&key) {
            return Ok(key);
        }
        let layout = (choice.variant, choice.tile, binding.operand, binding.element);
        if let Some(key) = self.packed.get(&layout) {
            return Ok(key.clone());
        }
        let values = self.stored(choice, binding)?;
        if constant {
            let mut hasher = DefaultHasher::new();
            bytemuck::cast_slice::<f32, u8>(&values).hash(&mut hasher);
            key.content = hasher.finish();
        }
        if !self.resources.contains_key(&key) {
            let (mut made, mut turns) = (Vec::with_capacity(self.sets), Turns::new());
            for _ in 0..self.sets {
                made.push(match key.image {
                    true => self.image(wait, &key, &values).await?,
                    false => self.buffer(&values, key.dtype)?,
                });
                turns.pass().await;
            }
            self.resources.insert(key.clone(), made);
        }
        if constant {
            self.packed.insert(layout, key.clone());
        }
        Ok(key)
    }

    /// Scratch memory, which each run leaves as zeros for the next one: one for all sets.
    fn scratch(&mut self, binding: &Binding, bytes: u64) -> Result<Key> {
        let Binding { operand, access, element, .. } = *binding;
        let key = Key { operand, access, element, dtype: element.dtype(), image: false, content: bytes };
        if !self.resources.contains_key(&key) {
            let zeros = alloc::zeros::<f32>(bytes.div_ceil(4) as usize, "scratch memory")?;
            let made = self.buffer(&zeros, key.dtype)?;
            self.resources.insert(key.clone(), vec![made; self.sets]);
        }
        Ok(key)
    }

    pub(super) fn buffer(&self, values: &[f32], dtype: DType) -> Result<Resource> {
        let bytes = encode(values, dtype);
        let slice = self.device.alloc(bytes.len() as u64, Memory::Device)?.whole();
        self.device.write(&slice, &bytes)?;
        Ok(slice.into())
    }
}

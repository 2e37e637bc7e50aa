//! Functions of the CPU, in a session on a GPU too.

use super::builder::Builder;
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use crate::dims::Dims;
use crate::error::{Error, Result as GraphResult};
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::ops::custom::Custom;

impl Builder {
    /// Adds a function of the CPU, with outputs of these extents.
    pub(crate) fn hosted(
        &mut self,
        part: &str,
        kernel: &'static str,
        inputs: Vec<Operand>,
        outputs: &[Vec<usize>],
        run: impl Fn(&[&[f32]], &mut [&mut [f32]]) -> GraphResult<()> + Send + Sync + 'static,
    ) -> Result<Vec<Operand>, Reason> {
        let dims = outputs.iter().map(|own| dims_of(own)).collect::<Result<Vec<Dims>, Reason>>()?;
        let mut values = Vec::with_capacity(inputs.len());
        for slot in inputs {
            let mapped = self.mapped(slot)?;
            values.push(self.logical(&mapped)?);
        }
        let mut wanted = Vec::with_capacity(values.len());
        for &value in &values {
            wanted.push(self.dims(value)?);
        }
        // The function is made for these extents.
        let outputs_of = move |inputs: &[Dims]| match inputs == wanted {
            true => Ok(dims.clone()),
            false => {
                Err(Error::shape(kernel, format!("inputs {inputs:?}"), format!("{wanted:?}, as in the file")))
            }
        };
        let function = Custom::host(kernel, outputs_of, run);
        let written = self.add(part, |graph, name| graph.custom(name, &function, &values))?;
        let slot =
            |(value, own): (_, &Vec<usize>)| Operand::Value(Mapped::plain(value, own.len(), Kind::F32));
        Ok(written.into_iter().zip(outputs).map(slot).collect())
    }
}

//! What lies between the two sums of `gate`.

use super::Words;
use crate::emit::Operand;

impl Words {
    /// The statements on the accumulator variable `x` of the first sum, which is multiplied next.
    pub(crate) fn between(&self, x: &str, slice: &str) -> Result<Vec<String>, String> {
        let Some(between) = &self.spec.between else {
            return Err(format!("{} has no sum before its last", self.spec.op));
        };
        let bias = match between.bias {
            true => self.load4(Operand::WindowBias.name(), slice, "", "")?,
            false => String::new(),
        };
        let splat = |value: f32| self.constant4(value);
        let in_f32 = |function: &str, x: &str| self.in_f32(function, x);
        Ok(between.statements(x, &bias, "", "", &splat, &in_f32, &|x| self.is_nan(x)))
    }
}

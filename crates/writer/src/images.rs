//! Textures as OpenCL's images: of four channels of f32 or f16, read by coordinates or written.

use super::expressions::{Body, Text};
use super::{Outcome, refuse};
use naga::{
    Expression, Handle, ImageClass, ImageDimension, ScalarKind, StorageAccess, StorageFormat, TypeInner,
};

/// The type of an image argument, if OpenCL C has it.
pub(super) fn argument(of: &TypeInner) -> Option<&'static str> {
    let TypeInner::Image { dim: ImageDimension::D2, arrayed: false, class } = of else { return None };
    match class {
        ImageClass::Sampled { kind: ScalarKind::Float, multi: false } => Some("__read_only image2d_t"),
        ImageClass::Storage {
            format: StorageFormat::Rgba32Float | StorageFormat::Rgba16Float,
            access: StorageAccess::STORE,
        } => Some("__write_only image2d_t"),
        _ => None,
    }
}

impl Body<'_, '_> {
    pub(super) fn image_load(
        &mut self,
        image: Handle<Expression>,
        coordinate: Handle<Expression>,
    ) -> Outcome<Text> {
        let (name, place) = (self.image(image)?, self.coordinate(coordinate)?);
        Ok(Text::atom(format!("read_imagef({name}, {place})")))
    }

    pub(super) fn image_store(
        &mut self,
        image: Handle<Expression>,
        coordinate: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Outcome<()> {
        let (name, place) = (self.image(image)?, self.coordinate(coordinate)?);
        let value = self.expression(value)?;
        self.line(&format!("write_imagef({name}, {place}, {});", value.text));
        Ok(())
    }

    fn image(&self, image: Handle<Expression>) -> Outcome<String> {
        if let Expression::GlobalVariable(handle) = self.function.expressions[image]
            && let Some(known) = self.m.globals.get(&handle)
            && argument(self.inner(image)).is_some()
        {
            return Ok(known.name.clone());
        }
        refuse(None, "a texture that is not a two-dimensional one of floats")
    }

    /// OpenCL's coordinates are signed.
    fn coordinate(&mut self, handle: Handle<Expression>) -> Outcome<String> {
        if let Expression::Compose { ref components, .. } = self.function.expressions[handle]
            && let &[x, y] = &components[..]
            && !self.values.contains_key(&handle)
        {
            let (x, y) = (self.expression(x)?, self.expression(y)?);
            return Ok(format!("(int2)({}, {})", x.text, y.text));
        }
        let text = self.expression(handle)?;
        Ok(match self.scalar_kind(handle) {
            Some(ScalarKind::Uint) => format!("as_int2({})", text.text),
            _ => text.text,
        })
    }
}

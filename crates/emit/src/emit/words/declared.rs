//! How a kernel's arguments are declared.

use super::Words;
use crate::dtype::DType;
use crate::emit::{Access, Dialect, Element};

impl Words {
    fn buffer_type(&self, element: Element) -> Result<&'static str, String> {
        Ok(match (self.dialect, element) {
            (Dialect::Wgsl, Element::Scalar(DType::F32)) => "f32",
            (Dialect::Wgsl, Element::Scalar(DType::F16)) => "f16",
            (Dialect::Wgsl, Element::Vec4(DType::F32)) => "vec4<f32>",
            (Dialect::Wgsl, Element::Vec4(DType::F16)) if self.spec.native_half => "vec4<f16>",
            (Dialect::Wgsl, Element::Vec4(DType::F16)) => "vec2<u32>",
            (Dialect::Wgsl, Element::Scalar(DType::I32)) => "i32",
            (Dialect::Wgsl, Element::Scalar(DType::U32)) => "u32",
            (Dialect::Wgsl, Element::Vec4(DType::I32)) => "vec4<i32>",
            (Dialect::Wgsl, Element::Vec4(DType::U32)) => "vec4<u32>",
            (Dialect::Wgsl, Element::Atomic) => "atomic<u32>",
            (Dialect::OpenClC, Element::Scalar(DType::F32)) => "float",
            (Dialect::OpenClC, Element::Vec4(DType::F32)) => "float4",
            (Dialect::OpenClC, Element::Scalar(DType::I32)) => "int",
            (Dialect::OpenClC, Element::Scalar(DType::U32)) => "uint",
            (Dialect::OpenClC, Element::Vec4(DType::I32)) => "int4",
            (Dialect::OpenClC, Element::Vec4(DType::U32)) => "uint4",
            (Dialect::OpenClC, Element::Vec4(DType::F16) | Element::Scalar(DType::F16)) => "half",
            (_, Element::Image2d(_)) => return Err(format!("{} has no image arguments here", self.dialect)),
            (dialect, element) => return Err(format!("{dialect} has no buffers of {element:?} here")),
        })
    }

    /// WGSL: the module's bindings, parameter struct and helper functions.
    pub(crate) fn interface(&self) -> Result<String, String> {
        let interface = &self.spec.interface;
        let mut out = String::new();
        for (index, binding) in interface.bindings.iter().enumerate() {
            if let Element::Image2d(dtype) = binding.element {
                let format = if dtype == DType::F16 { "rgba16float" } else { "rgba32float" };
                let ty = match binding.access {
                    Access::Read => "texture_2d<f32>".to_owned(),
                    _ => format!("texture_storage_2d<{format}, write>"),
                };
                let name = binding.operand.name();
                out.push_str(&format!("@group(0) @binding({index}) var {name}: {ty};\n"));
                continue;
            }
            let access = if binding.access == Access::Read { "read" } else { "read_write" };
            let ty = self.buffer_type(binding.element)?;
            out.push_str(&format!(
                "@group(0) @binding({index}) var<storage, {access}> {}: array<{ty}>;\n",
                binding.operand.name()
            ));
        }
        if !interface.params.is_empty() {
            out.push_str("struct Params {\n");
            for param in &interface.params {
                out.push_str(&format!("    {}: {},\n", param.name, param.ty.name(self.dialect)));
            }
            out.push_str(&format!(
                "}}\n@group(0) @binding({}) var<uniform> params: Params;\n",
                interface.bindings.len()
            ));
        }
        if interface.bindings.iter().any(|binding| binding.element == Element::Vec4(DType::F16))
            && !self.spec.native_half
        {
            out.push_str(concat!(
                "fn unpack_half4(bits: vec2<u32>) -> vec4<f32> {\n",
                "    return vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y));\n",
                "}\n",
                "fn pack_half4(value: vec4<f32>) -> vec2<u32> {\n",
                "    return vec2<u32>(pack2x16float(value.xy), pack2x16float(value.zw));\n",
                "}\n",
            ));
        }
        Ok(out)
    }

    /// OpenCL C: the kernel's argument list.
    pub(crate) fn arguments(&self) -> Result<String, String> {
        let interface = &self.spec.interface;
        let mut out = Vec::new();
        for binding in &interface.bindings {
            let name = binding.operand.name();
            out.push(match (binding.element, binding.access) {
                (Element::Image2d(_), Access::Read) => format!("__read_only image2d_t {name}"),
                (Element::Image2d(_), Access::Write) => format!("__write_only image2d_t {name}"),
                (Element::Image2d(_), Access::ReadWrite) => {
                    return Err(format!("{name}: OpenCL 1.2 images are read or written, not both"));
                }
                (element, access) => {
                    let constant = if access == Access::Read { "const " } else { "" };
                    format!("__global {constant}{}* restrict {name}", self.buffer_type(element)?)
                }
            });
        }
        out.extend(
            interface
                .params
                .iter()
                .map(|param| format!("const {} {}", param.ty.name(self.dialect), param.name)),
        );
        Ok(out.join(",\n    "))
    }
}

//! The part of TensorFlow Lite's FlatBuffers schema (version 3) that the loader reads.
//!
//! A field is given by its id and type, as in the published schema. The list is the one source of
//! both the verifier and the accessors, so that what is read is what was verified.

use flatbuffers::{
    Follow, ForwardsUOffset, InvalidFlatbuffer, Table, TableVerifier, Vector, Verifiable, Verifier,
    VerifierOptions,
};

/// An offset to something stored elsewhere in the file.
pub(super) type Offset<T> = ForwardsUOffset<T>;
/// A stored vector of tables.
pub(super) type Tables<'a, T> = Vector<'a, Offset<T>>;

/// Where a table's vtable keeps the field of this id: behind two 16-bit sizes.
pub(super) const fn slot(id: u16) -> u16 {
    4 + 2 * id
}

/// Element `index` of a vector, if there is one.
pub(super) fn at<'a, T: Follow<'a> + 'a>(vector: Vector<'a, T>, index: usize) -> Option<T::Inner> {
    (index < vector.len()).then(|| vector.get(index))
}

macro_rules! accessor {
    ($(#[$doc:meta])* $field:ident, $id:literal, $kind:ty) => {
        $(#[$doc])*
        pub(super) fn $field(&self) -> Option<<$kind as Follow<'a>>::Inner> {
            // SAFETY: this table comes from `root`, whose verifier checked this field as this type;
            // `hostile::corrupted_bytes_never_panic` runs it on corrupted files.
            unsafe { self.0.get::<$kind>(slot($id), None) }
        }
    };
    ($(#[$doc:meta])* $field:ident, $id:literal, $kind:ty, $default:expr) => {
        $(#[$doc])*
        pub(super) fn $field(&self) -> $kind {
            // SAFETY: as for the accessors of offsets.
            unsafe { self.0.get::<$kind>(slot($id), None) }.unwrap_or($default)
        }
    };
}

macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident $(and $union:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $id:literal => $kind:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name<'a>(Table<'a>);

        impl<'a> Follow<'a> for $name<'a> {
            type Inner = Self;

            unsafe fn follow(buf: &'a [u8], loc: usize) -> Self {
                // SAFETY: the caller promises a verified table at `loc`.
                $name(unsafe { Table::new(buf, loc) })
            }
        }

        impl<'a> Verifiable for $name<'a> {
            fn run_verifier(verifier: &mut Verifier, position: usize) -> Result<(), InvalidFlatbuffer> {
                let table = verifier.visit_table(position)?;
                $(let table = table.visit_field::<$kind>(stringify!($field), slot($id), false)?;)*
                $(let table = $union(table)?;)?
                table.finish();
                Ok(())
            }
        }

        impl<'a> $name<'a> {
            $(accessor!($(#[$field_doc])* $field, $id, $kind $(, $default)?);)*
        }
    };
}

table! {
    /// The file.
    Model {
        version: 0 => u32 = 0,
        operator_codes: 1 => Offset<Tables<'a, OperatorCode<'a>>>,
        subgraphs: 2 => Offset<Tables<'a, SubGraph<'a>>>,
        buffers: 4 => Offset<Tables<'a, Buffer<'a>>>,
    }
}

table! {
    /// What the operators of one opcode index are.
    OperatorCode {
        /// The code while it fits a byte; 127 where only `builtin_code` tells.
        deprecated_builtin_code: 0 => i8 = 0,
        custom_code: 1 => Offset<&'a str>,
        builtin_code: 3 => i32 = 0,
    }
}

table! {
    /// A network.
    SubGraph {
        tensors: 0 => Offset<Tables<'a, Tensor<'a>>>,
        inputs: 1 => Offset<Vector<'a, i32>>,
        outputs: 2 => Offset<Vector<'a, i32>>,
        operators: 3 => Offset<Tables<'a, Operator<'a>>>,
    }
}

table! {
    /// A constant or a feature map.
    Tensor {
        shape: 0 => Offset<Vector<'a, i32>>,
        element_type: 1 => i8 = 0,
        buffer: 2 => u32 = 0,
        name: 3 => Offset<&'a str>,
        quantization: 4 => Offset<Quantization<'a>>,
        is_variable: 5 => bool = false,
        sparsity: 6 => Offset<Sparsity<'a>>,
        /// The shape with -1 for extents that are not known before a run.
        shape_signature: 7 => Offset<Vector<'a, i32>>,
    }
}

table! {
    /// How integers stand for reals; also written, without scales, in float files.
    Quantization {
        scale: 2 => Offset<Vector<'a, f32>>,
    }
}

table! {
    /// How a sparse constant is stored.
    Sparsity {
        traversal_order: 0 => Offset<Vector<'a, i32>>,
    }
}

table! {
    /// The bytes of a constant.
    Buffer {
        data: 0 => Offset<Vector<'a, u8>>,
        /// Where the bytes lie behind the FlatBuffer, in files above 2 GiB.
        offset: 1 => u64 = 0,
        size: 2 => u64 = 0,
    }
}

table! {
    /// One operator.
    Operator and options {
        opcode_index: 0 => u32 = 0,
        inputs: 1 => Offset<Vector<'a, i32>>,
        outputs: 2 => Offset<Vector<'a, i32>>,
        /// Which table `builtin_options` (id 4) is.
        options_type: 3 => u8 = 0,
    }
}

table! {
    /// Options of `CONV_2D`.
    Conv2dOptions {
        padding: 0 => i8 = 0,
        stride_w: 1 => i32 = 0,
        stride_h: 2 => i32 = 0,
        activation: 3 => i8 = 0,
        dilation_w: 4 => i32 = 1,
        dilation_h: 5 => i32 = 1,
    }
}

table! {
    /// Options of `DEPTHWISE_CONV_2D`.
    DepthwiseOptions {
        padding: 0 => i8 = 0,
        stride_w: 1 => i32 = 0,
        stride_h: 2 => i32 = 0,
        multiplier: 3 => i32 = 0,
        activation: 4 => i8 = 0,
        dilation_w: 5 => i32 = 1,
        dilation_h: 6 => i32 = 1,
    }
}

table! {
    /// Options of `LEAKY_RELU`.
    LeakyReluOptions {
        alpha: 0 => f32 = 0.0,
    }
}

/// The field id of the union `builtin_options` of an operator.
pub(super) const OPTIONS: u16 = 4;

/// The values of `options_type` whose tables are read.
pub(super) mod options_type {
    pub(in super::super) const CONV_2D: u8 = 1;
    pub(in super::super) const DEPTHWISE_CONV_2D: u8 = 2;
    pub(in super::super) const LEAKY_RELU: u8 = 75;
}

/// Verifies the options of an operator, if they are of a type that is read.
fn options<'v, 'o, 'b>(
    mut table: TableVerifier<'v, 'o, 'b>,
) -> Result<TableVerifier<'v, 'o, 'b>, InvalidFlatbuffer> {
    let tag = match table.deref(slot(3))? {
        Some(position) => table.verifier().get_u8(position)?,
        None => 0,
    };
    if let Some(position) = table.deref(slot(OPTIONS))? {
        let verifier = table.verifier();
        match tag {
            options_type::CONV_2D => Offset::<Conv2dOptions<'_>>::run_verifier(verifier, position)?,
            options_type::DEPTHWISE_CONV_2D => {
                Offset::<DepthwiseOptions<'_>>::run_verifier(verifier, position)?;
            }
            options_type::LEAKY_RELU => Offset::<LeakyReluOptions<'_>>::run_verifier(verifier, position)?,
            _ => (),
        }
    }
    Ok(table)
}

macro_rules! options_accessor {
    ($name:ident, $tag:ident, $table:ident) => {
        /// The options, if they are of this type.
        pub(super) fn $name(&self) -> Option<$table<'a>> {
            if self.options_type() != options_type::$tag {
                return None;
            }
            // SAFETY: `options` verified the union as this table for this tag.
            unsafe { self.0.get::<Offset<$table<'a>>>(slot(OPTIONS), None) }
        }
    };
}

impl<'a> Operator<'a> {
    options_accessor!(conv2d, CONV_2D, Conv2dOptions);
    options_accessor!(depthwise, DEPTHWISE_CONV_2D, DepthwiseOptions);
    options_accessor!(leaky_relu, LEAKY_RELU, LeakyReluOptions);
}

/// Verifies the whole file and gives its root.
pub(super) fn root(bytes: &[u8]) -> Result<Model<'_>, InvalidFlatbuffer> {
    // Old writers leave out the zero behind a string; nothing here relies on it.
    let options = VerifierOptions { ignore_missing_null_terminator: true, ..Default::default() };
    flatbuffers::root_with_opts::<Model<'_>>(&options, bytes)
}

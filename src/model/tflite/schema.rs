//! The part of TensorFlow Lite's FlatBuffers schema (version 3) that the loader reads.
//!
//! A field is given by its id and type, as in the published schema. The list is the one source of
//! both the verifier and the accessors, so that what is read is what was verified.

use flatbuffers::{
    Follow, ForwardsUOffset, InvalidFlatbuffer, SimpleToVerifyInSlice, Table, TableVerifier, Vector,
    Verifiable, Verifier, VerifierOptions,
};

use super::options::options;
use std::marker::PhantomData;

/// An offset to something stored elsewhere in the file.
pub(super) type Offset<T> = ForwardsUOffset<T>;
/// A stored vector of tables.
pub(super) type Tables<'a, T> = Vector<'a, Offset<T>>;

/// Where a table's vtable keeps the field of this id: behind two 16-bit sizes.
pub(super) const fn slot(id: u16) -> u16 {
    4 + 2 * id
}

/// A number of eight bytes wherever it lies. Some writers align nothing to more than four bytes, and TensorFlow Lite
/// reads what they write.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Wide<T>([u8; 8], PhantomData<T>);

macro_rules! wide {
    ($($number:ty),*) => {$(
        impl<'a> Follow<'a> for Wide<$number> {
            type Inner = $number;

            unsafe fn follow(buf: &'a [u8], loc: usize) -> $number {
                let bytes = buf.get(loc..).and_then(|rest| rest.first_chunk());
                <$number>::from_le_bytes(bytes.copied().unwrap_or_default())
            }
        }
    )*};
}

wide!(i64, u64);

impl<T> SimpleToVerifyInSlice for Wide<T> {}

impl<T> Verifiable for Wide<T> {
    fn run_verifier(verifier: &mut Verifier, position: usize) -> Result<(), InvalidFlatbuffer> {
        verifier.in_buffer::<Self>(position)
    }
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
        pub(super) fn $field(&self) -> <$kind as Follow<'a>>::Inner {
            // SAFETY: as for the accessors of offsets.
            unsafe { self.0.get::<$kind>(slot($id), None) }.unwrap_or($default)
        }
    };
}

macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident $(and $($union:ident),+)? {
            $($(#[$field_doc:meta])* $field:ident: $id:literal => $kind:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name<'a>(pub(super) Table<'a>);

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
                $($(let table = $union(table)?;)+)?
                table.finish();
                Ok(())
            }
        }

        impl<'a> $name<'a> {
            $(accessor!($(#[$field_doc])* $field, $id, $kind $(, $default)?);)*
        }
    };
}

/// The union of field `id` of a table, its type being in the field before: the function that verifies it, and
/// an accessor for each type that is read.
macro_rules! union {
    (
        $(#[$doc:meta])*
        $verify:ident: $id:tt by $type:ident of $table:ident => { $($method:ident: $tag:literal => $kind:ident,)* }
    ) => {
        $(#[$doc])*
        pub(super) fn $verify<'v, 'o, 'b>(
            mut table: TableVerifier<'v, 'o, 'b>,
        ) -> Result<TableVerifier<'v, 'o, 'b>, InvalidFlatbuffer> {
            let tag = match table.deref(slot($id - 1))? {
                Some(position) => table.verifier().get_u8(position)?,
                None => 0,
            };
            if let Some(position) = table.deref(slot($id))? {
                let verifier = table.verifier();
                match tag {
                    $($tag => Offset::<$kind<'_>>::run_verifier(verifier, position)?,)*
                    _ => (),
                }
            }
            Ok(table)
        }

        impl<'a> $table<'a> {
            $(
                /// The union, if it is of this type.
                pub(super) fn $method(&self) -> Option<$kind<'a>> {
                    if self.$type() != $tag {
                        return None;
                    }
                    // SAFETY: the function above verified the union as this table for this tag.
                    unsafe { self.0.get::<Offset<$kind<'a>>>(slot($id), None) }
                }
            )*
        }
    };
}

/// The tables of operators' options: the type's number, its name in the schema, its fields.
macro_rules! options {
    ($(
        $(#[$doc:meta])*
        $method:ident: $tag:literal => $name:ident {
            $($(#[$field_doc:meta])* $field:ident: $id:literal => $kind:ty $(= $default:expr)?,)*
        }
    )*) => {
        $(table! {
            $(#[$doc])*
            $name { $($(#[$field_doc])* $field: $id => $kind $(= $default)?,)* }
        })*

        $(impl $name<'_> {
            /// The value of `options_type`.
            pub(super) const TAG: u8 = $tag;
        })*

        // In ascending order, each type once.
        const _: () = {
            let tags = [$($name::TAG),*];
            let mut index = 1;
            while index < tags.len() {
                assert!(tags[index - 1] < tags[index]);
                index += 1;
            }
        };

        union! {
            /// The options of an operator.
            options: OPTIONS by options_type of Operator => {
                $($method: $tag => $name,)*
            }
        }
    };
}

table! {
    /// The file.
    Model {
        version: 0 => u32 = 0,
        operator_codes: 1 => Offset<Tables<'a, OperatorCode<'a>>>,
        subgraphs: 2 => Offset<Tables<'a, SubGraph<'a>>>,
        description: 3 => Offset<&'a str>,
        buffers: 4 => Offset<Tables<'a, Buffer<'a>>>,
        metadata: 6 => Offset<Tables<'a, Metadata<'a>>>,
        signatures: 7 => Offset<Tables<'a, Signature<'a>>>,
    }
}

table! {
    /// A buffer that is no tensor.
    Metadata {
        name: 0 => Offset<&'a str>,
        buffer: 1 => u32 = 0,
    }
}

table! {
    /// The names by which a network is called.
    Signature {
        inputs: 0 => Offset<Tables<'a, TensorName<'a>>>,
        outputs: 1 => Offset<Tables<'a, TensorName<'a>>>,
        key: 2 => Offset<&'a str>,
        subgraph: 4 => u32 = 0,
    }
}

table! {
    /// The name of a tensor in a signature.
    TensorName {
        name: 0 => Offset<&'a str>,
        tensor: 1 => u32 = 0,
    }
}

table! {
    /// What the operators of one opcode index are.
    OperatorCode {
        /// The code while it fits a byte; 127 where only `builtin_code` has it.
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
        zero_point: 3 => Offset<Vector<'a, Wide<i64>>>,
        /// The axis with a scale for each index, where there are several.
        axis: 6 => i32 = 0,
    }
}

table! {
    /// How a sparse constant is stored.
    Sparsity {
        /// The axes of the tensor, then those of a block, in the order of the levels.
        traversal_order: 0 => Offset<Vector<'a, i32>>,
        /// The tensor's axis of each axis of a block.
        block_map: 1 => Offset<Vector<'a, i32>>,
        levels: 2 => Offset<Tables<'a, Level<'a>>>,
    }
}

table! {
    /// How one level of a sparse constant is stored.
    Level and level_segments, level_indices {
        /// 0: every index; 1: those that are listed.
        format: 0 => i8 = 0,
        size: 1 => i32 = 0,
        segments_type: 2 => u8 = 0,
        indices_type: 4 => u8 = 0,
    }
}

table! {
    /// Indices of four bytes.
    Indices32 {
        values: 0 => Offset<Vector<'a, i32>>,
    }
}

table! {
    /// Indices of two bytes.
    Indices16 {
        values: 0 => Offset<Vector<'a, u16>>,
    }
}

table! {
    /// Indices of one byte.
    Indices8 {
        values: 0 => Offset<Vector<'a, u8>>,
    }
}

union! {
    /// Where the indices of each element of the level before begin and end.
    level_segments: 3 by segments_type of Level => {
        segments32: 1 => Indices32,
        segments16: 2 => Indices16,
        segments8: 3 => Indices8,
    }
}

union! {
    /// The indices that are stored.
    level_indices: 5 by indices_type of Level => {
        indices32: 1 => Indices32,
        indices16: 2 => Indices16,
        indices8: 3 => Indices8,
    }
}

impl Level<'_> {
    /// Where the indices of each element of the level before begin and end.
    pub(super) fn segments(&self) -> Vec<i64> {
        match self.segments_type() {
            1 => widened(self.segments32().and_then(|table| table.values())),
            2 => widened(self.segments16().and_then(|table| table.values())),
            _ => widened(self.segments8().and_then(|table| table.values())),
        }
    }

    /// The indices that are stored.
    pub(super) fn indices(&self) -> Vec<i64> {
        match self.indices_type() {
            1 => widened(self.indices32().and_then(|table| table.values())),
            2 => widened(self.indices16().and_then(|table| table.values())),
            _ => widened(self.indices8().and_then(|table| table.values())),
        }
    }
}

fn widened<'a, T: Follow<'a> + 'a>(vector: Option<Vector<'a, T>>) -> Vec<i64>
where
    T::Inner: Into<i64>,
{
    vector.map_or_else(Vec::new, |vector| vector.iter().map(Into::into).collect())
}

table! {
    /// The bytes of a constant.
    Buffer {
        data: 0 => Offset<Vector<'a, u8>>,
        /// Where the bytes lie behind the FlatBuffer, in files above 2 GiB.
        offset: 1 => Wide<u64> = 0,
        size: 2 => Wide<u64> = 0,
    }
}

table! {
    /// One operator.
    Operator and options, more_options {
        opcode_index: 0 => u32 = 0,
        inputs: 1 => Offset<Vector<'a, i32>>,
        outputs: 2 => Offset<Vector<'a, i32>>,
        /// Which table `builtin_options` (id 4) is.
        options_type: 3 => u8 = 0,
        custom_options: 5 => Offset<Vector<'a, u8>>,
        /// Which table `builtin_options_2` (id 12) is.
        more_options_type: 11 => u8 = 0,
    }
}

union! {
    /// The options of an operator of which there are too many for the other union.
    more_options: 12 by more_options_type of Operator => {
        composite: 21 => CompositeOptions,
    }
}

table! {
    /// Options of `STABLEHLO_COMPOSITE`.
    CompositeOptions {
        decomposition: 1 => i32 = 0,
    }
}

/// The deepest table within tables; the schema's own have at most eight.
const MAX_DEPTH: usize = 16;

/// The field id of the union `builtin_options` of an operator.
pub(super) const OPTIONS: u16 = 4;

/// Verifies the whole file and gives its root.
pub(super) fn root(bytes: &[u8]) -> Result<Model<'_>, InvalidFlatbuffer> {
    verified(bytes)
}

/// Verifies a FlatBuffer and gives its root.
pub(super) fn verified<'a, T>(bytes: &'a [u8]) -> Result<T, InvalidFlatbuffer>
where
    T: Follow<'a, Inner = T> + Verifiable + 'a,
{
    // Old writers leave out the zero behind a string; nothing here relies on it.
    let options =
        VerifierOptions { ignore_missing_null_terminator: true, max_depth: MAX_DEPTH, ..Default::default() };
    flatbuffers::root_with_opts::<T>(&options, bytes)
}

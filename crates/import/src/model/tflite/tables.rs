//! How tables of FlatBuffers are declared.
//!
//! A field is given by its id and type, as in the published schema. The list is the one source of
//! both the verifier and the accessors, so that what is read is what was verified.

use flatbuffers::{
    Follow, ForwardsUOffset, InvalidFlatbuffer, SimpleToVerifyInSlice, Vector, Verifiable, Verifier,
    VerifierOptions,
};
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

/// The deepest table within tables; the schema's own have at most eight.
const MAX_DEPTH: usize = 16;

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

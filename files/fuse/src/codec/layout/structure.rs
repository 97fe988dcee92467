//! Structures of integers without gaps, copied from and to bytes in the machine's byte order.

/// A value with a fixed layout: an integer, an array, or a structure of these without gaps.
pub(crate) trait Plain: Copy {
    /// Reads the value from `bytes`, which have its size.
    fn read(bytes: &[u8]) -> Self;

    /// Writes the value to `bytes`, which have its size.
    fn write(&self, bytes: &mut [u8]);
}

macro_rules! integers {
    ($($kind:ty)*) => {$(
        impl Plain for $kind {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("the size of the integer"))
            }

            #[inline]
            fn write(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

integers! { u16 u32 i32 u64 i64 }

impl<T: Plain, const N: usize> Plain for [T; N] {
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let mut reader = Reader(bytes);
        std::array::from_fn(|_| reader.take())
    }

    #[inline]
    fn write(&self, bytes: &mut [u8]) {
        for (value, part) in self.iter().zip(bytes.chunks_exact_mut(size_of::<T>())) {
            value.write(part);
        }
    }
}

/// Bytes that consecutive fields are read from.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    #[inline]
    pub(super) fn take<T: Plain>(&mut self) -> T {
        let (field, rest) = self.0.split_at(size_of::<T>());
        self.0 = rest;
        T::read(field)
    }
}

/// Bytes that consecutive fields are written to.
pub(super) struct Writer<'a>(pub(super) &'a mut [u8]);

impl Writer<'_> {
    #[inline]
    pub(super) fn put<T: Plain>(&mut self, value: &T) {
        let (field, rest) = std::mem::take(&mut self.0).split_at_mut(size_of::<T>());
        value.write(field);
        self.0 = rest;
    }
}

/// Defines [`Plain`] structures. A gap between fields is an error of the compiler.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $kind),* }

        impl $crate::codec::layout::structure::Plain for $name {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                const { assert!(size_of::<$name>() == 0 $(+ size_of::<$kind>())*) };
                let mut reader = $crate::codec::layout::structure::Reader(bytes);
                Self { $($field: reader.take()),* }
            }

            #[inline]
            fn write(&self, bytes: &mut [u8]) {
                let mut writer = $crate::codec::layout::structure::Writer(bytes);
                $(writer.put(&self.$field);)*
            }
        }
    )*};
}

pub(super) use structures;

#[cfg(test)]
mod tests {
    use super::*;

    structures! {
        Inner { first: u16, second: u16, third: i32 }
        Outer { inner: Inner, list: [u64; 2], last: i64 }
    }

    #[test]
    fn a_structure_has_the_bytes_of_its_memory() {
        let inner = Inner { first: 1, second: 2, third: -3 };
        let outer = Outer { inner, list: [4, 5], last: -6 };
        let mut bytes = [0; size_of::<Outer>()];
        outer.write(&mut bytes);
        let expected = [
            &1_u16.to_ne_bytes()[..],
            &2_u16.to_ne_bytes(),
            &(-3_i32).to_ne_bytes(),
            &4_u64.to_ne_bytes(),
            &5_u64.to_ne_bytes(),
            &(-6_i64).to_ne_bytes(),
        ];
        assert_eq!(bytes[..], expected.concat());
        let read = Outer::read(&bytes);
        assert_eq!((read.inner.third, read.list, read.last), (-3, [4, 5], -6));
        assert_eq!((read.inner.first, read.inner.second), (1, 2));
    }
}

//! Groups of counters with the names and meanings of their fields.

/// Name and meaning of a counter or a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The name of the field.
    pub name: &'static str,
    /// Its documentation, line by line.
    pub help: &'static [&'static str],
}

impl Metadata {
    /// Returns the documentation in one line of plain text, without links: ``[`x`](path)`` becomes
    /// `` `x` ``.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.help.iter().map(|line| line.trim()).collect();
        let text = lines.join(" ").trim().to_owned();
        let mut plain = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("[`") {
            plain.push_str(before);
            let Some((name, behind)) = after.split_once("`]") else {
                plain.push_str("[`");
                rest = after;
                continue;
            };
            plain.push('`');
            plain.push_str(name);
            plain.push('`');
            let target = behind.strip_prefix('(').and_then(|path| path.split_once(')'));
            rest = target.map_or(behind, |(_, behind)| behind);
        }
        plain.push_str(rest);
        plain
    }
}

/// Adds each of `more` to the counter in its place.
pub(super) fn add_each(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Declares a group of counters, or of gauges: a struct of plain integers with the names and
/// meanings of its fields.
#[doc(hidden)]
#[macro_export]
macro_rules! __counters {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: u64,)*
        }

        impl $name {
            /// Names and meanings of all, in the order of the declaration.
            pub const METADATA: &'static [$crate::Metadata] = &[
                $($crate::Metadata { name: stringify!($field), help: &[$($field_doc),*] },)*
            ];

            /// Returns the name and the value of each, in the order of the declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field),)*].into_iter()
            }

            /// Adds each of `other`.
            pub const fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

pub(crate) use __counters as counters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_one_line_without_links() {
        let help =
            &[" Times that [`Builder::share`](crate::Builder::share)", " was used: [`x`], `y`."];
        let text = Metadata { name: "x", help }.text();
        assert_eq!(text, "Times that `Builder::share` was used: `x`, `y`.");
    }
}

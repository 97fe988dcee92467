//! Reader of tables of published figures, which are CSV files in the source tree.

use serde::de::DeserializeOwned;

/// Returns the rows of a CSV table. The first line names the columns; `#` starts a comment line; an
/// empty field deserializes to `None`.
///
/// # Panics
///
/// A row is not a `T`. Tables are part of the program, so this is a mistake in the source tree.
#[must_use]
pub fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows = reader.deserialize().collect::<Result<_, _>>();
    rows.unwrap_or_else(|error| panic!("table: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_type_of_the_caller() {
        let rows: Vec<(u32, Option<f64>, String)> =
            rows("# source\nsize,share,name\n8,0.5,a\n10,,b\n");
        assert_eq!(rows, [(8, Some(0.5), "a".to_owned()), (10, None, "b".to_owned())]);
    }

    #[test]
    #[should_panic(expected = "record 1")]
    fn a_mistake_in_a_table_is_reported_with_its_row() {
        let _ = rows::<(u32, f64)>("size,share\n8,half\n");
    }
}

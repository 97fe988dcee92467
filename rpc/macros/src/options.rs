//! The options in the parentheses of the attribute.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::{LitStr, Path, Token};

/// The options of a service.
pub(crate) struct ServiceOptions {
    /// Name on the wire.
    pub(crate) name: Option<LitStr>,
    /// Format of arguments and results.
    pub(crate) codec: Option<Path>,
    /// Path of `apus-rpc`.
    pub(crate) krate: Option<Path>,
}

impl ServiceOptions {
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let mut options = Self { name: None, codec: None, krate: None };
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                let name: LitStr = meta.value()?.parse()?;
                check_name(&name)?;
                options.name = Some(name);
            } else if meta.path.is_ident("codec") {
                options.codec = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("crate") {
                let value = meta.value()?;
                // A string is accepted as well, since `crate = crate` reads oddly.
                options.krate = Some(if value.peek(LitStr) {
                    value.parse::<LitStr>()?.parse()?
                } else if value.peek(Token![crate]) {
                    value.parse::<Token![crate]>()?;
                    syn::parse_quote!(crate)
                } else {
                    value.parse()?
                });
            } else {
                return Err(meta.error(
                    "unknown option; a service has `name = \"…\"`, `codec = …` and `crate = …`",
                ));
            }
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(options)
    }
}

/// Checks the name of a service: on the wire, `/` and a method follow it.
fn check_name(name: &LitStr) -> syn::Result<()> {
    let text = name.value();
    if text.is_empty() || text.len() > 128 || text.contains('/') {
        let message =
            "the name of a service has 1 to 128 bytes and no `/`, such as \"shop.Orders\"";
        return Err(syn::Error::new(name.span(), message));
    }
    Ok(())
}

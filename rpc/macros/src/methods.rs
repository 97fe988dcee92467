//! Descriptions of the methods: a function for each, and the names and types that the generated
//! code shares.

use crate::model::{Method, Output, Service};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

fn methods_module(service: &Service) -> Ident {
    format_ident!("__{}_methods", service.item.ident.to_string().to_lowercase())
}

fn method_static(method: &Method) -> Ident {
    format_ident!("{}", method.ident.to_string().trim_start_matches("r#").to_uppercase())
}

pub(crate) fn wire_name(method: &Method) -> String {
    method.ident.to_string().trim_start_matches("r#").to_owned()
}

/// Generates a function with a static for each method, in the scope of the trait, where its types
/// resolve.
pub(crate) fn expand_methods(service: &Service) -> TokenStream {
    let (krate, codec, module) = (&service.krate, &service.codec, methods_module(service));
    let statics = service.methods.iter().map(|method| {
        let path = format!("{}/{}", service.name, wire_name(method));
        let name = format_ident!("{}_{}", module, wire_name(method));
        let upper = method_static(method);
        let idempotent = method.idempotent;
        let arguments = arguments_type(method);
        let parts = method.stream.as_ref().map_or_else(|| quote!(()), |(_, of)| quote!(#of));
        let Output { value, is_stream, error } = &method.result;
        let value = if *is_stream { quote!((u8, #value)) } else { quote!((#value,)) };
        let error = error.as_ref().map_or_else(|| quote!(()), |of| quote!(#of));
        quote_spanned! {method.span=>
            #[doc(hidden)]
            #[allow(non_snake_case)]
            fn #name() -> &'static #krate::typed::Method {
                static #upper: #krate::typed::Method = #krate::typed::Method::new(
                    #path,
                    #idempotent,
                    #krate::typed::Shape::<#codec, #arguments, #parts, #value, #error>::signature,
                );
                &#upper
            }
        }
    });
    quote!(#(#statics)*)
}

pub(crate) fn method_function(service: &Service, method: &Method) -> Ident {
    format_ident!("{}_{}", methods_module(service), wire_name(method))
}

/// Returns the arguments except a stream, as a tuple.
pub(crate) fn arguments_type(method: &Method) -> TokenStream {
    let types = method.arguments.iter().map(|(_, of)| of);
    quote!((#(#types,)*))
}

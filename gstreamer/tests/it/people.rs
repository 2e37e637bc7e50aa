//! The bundled network on the bundled picture of drawn people, and on a film of it.

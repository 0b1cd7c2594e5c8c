package engine

// BriefSpec is briefSpec.
var BriefSpec = briefSpec

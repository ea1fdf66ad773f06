"""The page of the ops, made of the comments of proto/penstock/v1/ops.proto: they are the ops' manual."""

import pathlib
import tempfile

import grpc_tools
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]
_Field = descriptor_pb2.FieldDescriptorProto
# Of descriptor.proto: where messages, enums, fields, nested messages and an enum's values stand.
_MESSAGE, _ENUM, _FIELD, _NESTED_MESSAGE, _NESTED_ENUM, _VALUE = 4, 5, 2, 3, 4, 2


def _descriptor():
    with tempfile.NamedTemporaryFile() as out:
        built_in = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        arguments = ["protoc", f"-I{ROOT / 'proto'}", f"-I{built_in}", "--include_source_info", f"--descriptor_set_out={out.name}"]
        if protoc.main([*arguments, "penstock/v1/ops.proto"]) != 0:
            raise RuntimeError("protoc cannot read ops.proto")
        (file,) = (f for f in descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes()).file if f.name.endswith("ops.proto"))
        return file


class _Comments:
    def __init__(self, file):
        self._by_path = {tuple(l.path): l.leading_comments or l.trailing_comments for l in file.source_code_info.location}

    def of(self, *path):
        return "\n".join(line[1:] if line.startswith(" ") else line for line in self._by_path.get(path, "").rstrip().split("\n"))


def _type(field):
    names = {value: name[5:].lower() for name, value in _Field.Type.items()}
    name = field.type_name.rpartition(".")[2] if field.type_name else names[field.type]
    return f"repeated {name}" if field.label == _Field.LABEL_REPEATED else name


def _fields(message, comments, path):
    text = ""
    for index, field in enumerate(message.field):
        says = comments.of(*path, _FIELD, index).replace("\n", "\n    ").rstrip()
        text += f"* **`{field.name}`** ({_type(field)})" + (f": {says}" if says else "") + "\n"
    return text


def _message(message, title, level, comments, path):
    text = f"\n{'#' * level} {title}\n\n{comments.of(*path)}\n\n{_fields(message, comments, path)}"
    for index, enum in enumerate(message.enum_type):
        text += _enum(enum, level + 1, comments, (*path, _NESTED_ENUM, index))
    for index, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            text += _message(nested, f"{message.name}.{nested.name}", level + 1, comments, (*path, _NESTED_MESSAGE, index))
    return text


def _enum(enum, level, comments, path):
    text = f"\n{'#' * level} {enum.name}\n\n{comments.of(*path)}\n\n"
    for index, value in enumerate(enum.value):
        says = comments.of(*path, _VALUE, index).replace("\n", "\n    ")
        text += f"* **`{value.name}`**" + (f": {says}" if says else "") + "\n"
    return text


def pages():
    """(title, path, text) of the page."""
    file = _descriptor()
    comments = _Comments(file)
    stage = next(message for message in file.message_type if message.name == "Stage")
    ops = {field.type_name.rpartition(".")[2]: field.name for field in stage.field if field.HasField("oneof_index")}
    messages = list(enumerate(file.message_type))
    text = (
        "# Ops\n\nAn op is an operation on the dataset, named as in tf.data. A spec lists them as stages; in Python they are methods of "
        "[`penstock.Dataset`](python/datasets.md). This page is made of the comments of [`ops.proto`](../../proto/penstock/v1/ops.proto).\n"
    )
    text += _message(stage, "Every stage", 2, comments, (_MESSAGE, file.message_type[:].index(stage))).split("* **`tfrecord`**")[0]
    for index, message in sorted((pair for pair in messages if pair[1].name in ops), key=lambda pair: ops[pair[1].name]):
        text += _message(message, ops[message.name], 2, comments, (_MESSAGE, index))
    text += "\n## Messages inside of ops\n"
    for index, message in messages:
        if message.name not in ops and message.name != "Stage":
            text += _message(message, message.name, 3, comments, (_MESSAGE, index))
    for index, enum in enumerate(file.enum_type):
        text += _enum(enum, 3, comments, (_ENUM, index))
    return [("Ops", "reference/ops.md", text)]

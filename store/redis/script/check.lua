return {'ok', run()}

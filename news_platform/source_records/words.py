"""Little words by which a text shows its language, before a detector is asked; all lower case."""

# Words of a language that hardly any other has, frequent enough to be in most of its sentences.
_ENGLISH = """
about after and any are because been before between but can could did does each every from get had
has have help here how if into its just know learn like made make many may more must need new now of
only other our out over people should since some such than that the their them then there these they
this those through time until up upon use used using very want was well were what when where which
while who whose why will with within without work would year years you your
"""
COMMON_WORDS = {"en": frozenset(_ENGLISH.split())}

# Articles, prepositions and the like of languages in Latin script that are no English words. One of
# them is reason to ask, not proof: names have them too.
_TELLING = """
aan ako alla als ang au auf aus aux avec bei bij bir bu cette che chez como cu dalam dan dans dari
das de degli dei del della delle dem den dengan der des det di dla dos du een egy ein eine einer el
els em en es et ett fra für fuer gan gli het hogy ikke il ile im ini ist itu ja kami kwa la las
le les lo los med mga na nad nel nella ng nicht nie niet noi nos nostra nostro notre nous nuestra
nuestro och og op oraz où para på pada pe por prin qui que quel ses sie sind sobre sont sowie
su sua sur sus sy te tidak till til um un una und une uno unser untuk van ve voor vom von vos votre
vous wir y ya yang yn yr za zijn zu zum zur
"""
TELLING_WORDS = frozenset(_TELLING.split())
